"""Reads the nodes of a scheduler as columns, and after that only what has changed.

`ColumnReader` is called where the engine may be read. What it gives holds copies, so it can be worked on elsewhere:
flags and labels, which take a look at every node, are found there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster
from podium.cluster.journal import RowCursor
from podium.kube import Node
from podium.kube.node import Taint
from podium.run.dashboard import SchedulerView
from podium.run.pod_history import HistoryEntry
from podium_dashboard.records import MeasuredColumn, NodeLabelColumn, QueueCounts

Amounts = NDArray[np.int64]
CORDONED, NOT_READY, TAINTED = 1, 2, 4
ALWAYS_SHOWN: Final = ("cpu", "memory")
MOST_RESOURCES: Final = 12
MOST_MEASURED: Final = 4
MOST_LABEL_VALUES: Final = 500
"""A label with more values does not group nodes."""
MOST_LABELS: Final = 24
MOST_NEW_ENTRIES: Final = 2_000
"""Entries of the history that are looked at in one tick."""
_NODE_CONTROLLER: Final = "node.kubernetes.io/"


class NodeColumns(NamedTuple):
    """All nodes, in the order of their names."""

    names: list[str]
    nodes: list[Node]
    resources: tuple[str, ...]
    allocatable: Amounts
    """int64[resource, node]"""
    requested: Amounts
    pods: Amounts
    allowed_pods: Amounts
    measured: list[MeasuredColumn]


class ChangedNodes(NamedTuple):
    """What is new of some nodes, by their places among the columns."""

    places: NDArray[np.intp]
    nodes: list[Node]
    requested: Amounts
    pods: Amounts


class Reading(NamedTuple):
    """What one look at a scheduler gave: all columns, or those that changed since the look before."""

    now: float
    columns: NodeColumns | None
    changed: ChangedNodes | None
    counts: QueueCounts
    placed: int
    leads: bool
    bound: int
    failed: int
    written: int
    """How many entries the history has had."""
    entries: list[HistoryEntry]
    """The newest of them."""


class ColumnReader:
    """Reads a scheduler again and again."""

    def __init__(self) -> None:
        self._cluster: Cluster | None = None
        self._cursor: RowCursor
        self._rows: NDArray[np.intp]
        self._place_of: dict[int, int] = {}
        self._resources: tuple[str, ...] = ()
        self._nodes: list[Node] = []
        self._measured: list[int] = []
        self._written = 0

    def __call__(self, view: SchedulerView) -> Reading:
        cluster = view.engine.cluster
        columns = changed = None
        if cluster is not self._cluster:
            self._cluster, self._cursor, self._written = cluster, cluster.row_cursor(), 0
        generations = [each.readings.generation for each in view.followed[:MOST_MEASURED]]
        rows = self._cursor.read()
        if rows is None or generations != self._measured or not self._continues(cluster, rows[0]):
            columns = self._all(view)
            self._measured = generations
        else:
            changed = self._changed(cluster, sorted({*rows[0], *rows[1]}))
        history = view.history
        written = 0 if history is None else history.written
        since = max(self._written, written - MOST_NEW_ENTRIES)
        entries = [] if history is None else history.since(since)
        self._written = written
        return Reading(
            view.now,
            columns,
            changed,
            QueueCounts(**view.engine.queue.pending()._asdict(), permit=len(view.engine.waiting)),
            len(cluster.pods),
            view.leads,
            0 if history is None else history.bound,
            0 if history is None else history.failed,
            written,
            entries,
        )

    def _continues(self, cluster: Cluster, rows: Sequence[int]) -> bool:
        """Whether the nodes of these rows are those known, with the same labels and room."""
        for row in set(rows):
            node, place = cluster.nodes[row], self._place_of.get(row)
            if (node is None) != (place is None):
                return False
            if node is None or place is None:
                continue
            known = self._nodes[place]
            if node is known:
                continue
            if node.labels != known.labels or node.status.allocatable != known.status.allocatable:
                return False
            self._nodes[place] = node
        return True

    def _all(self, view: SchedulerView) -> NodeColumns:
        cluster = view.engine.cluster
        resources = cluster.resources
        rows = sorted(cluster.order.rows.tolist(), key=cluster.names.__getitem__)
        self._rows = chosen = np.array(rows, dtype=np.intp)
        self._place_of = {row: place for place, row in enumerate(rows)}
        self._nodes = [node for row in rows if (node := cluster.nodes[row]) is not None]
        self._resources = tuple(resource_names(cluster))
        return NodeColumns(
            [cluster.names[row] for row in rows],
            list(self._nodes),
            self._resources,
            resources.table(self._resources, offered=True)[:, chosen].copy(),
            resources.table(self._resources)[:, chosen].copy(),
            resources.pod_count[chosen].copy(),
            resources.allowed_pods[chosen].copy(),
            [
                MeasuredColumn(
                    query=str(each.series.query),
                    source=each.series.source.kind,
                    values=[
                        None if math.isnan(value) else value for value in each.readings.column(cluster)[chosen].tolist()
                    ],
                )
                for each in view.followed[:MOST_MEASURED]
            ],
        )

    def _changed(self, cluster: Cluster, rows: Sequence[int]) -> ChangedNodes:
        present = [row for row in rows if row in self._place_of]
        places = np.array([self._place_of[row] for row in present], dtype=np.intp)
        chosen = np.array(present, dtype=np.intp)
        resources = cluster.resources
        return ChangedNodes(
            places,
            [self._nodes[place] for place in places.tolist()],
            resources.table(self._resources)[:, chosen].copy(),
            resources.pod_count[chosen].copy(),
        )


def resource_names(cluster: Cluster) -> list[str]:
    """CPU and memory, then the extended resources that nodes have."""
    found = list(ALWAYS_SHOWN)
    if (cluster.resources.allocatable_of("ephemeral-storage") > 0).any():
        found.append("ephemeral-storage")
    return [*found, *sorted(cluster.resources.scalar_names)][:MOST_RESOURCES]


def flags_of(node: Node) -> int:
    """How a node stands, as the sum of CORDONED, NOT_READY and TAINTED."""
    flags = CORDONED if node.unschedulable else 0
    if not is_ready(node):
        flags |= NOT_READY
    if any(map(counts_as_tainted, node.taints)):
        flags |= TAINTED
    return flags


def is_ready(node: Node) -> bool:
    """Whether the node says so; one that says nothing counts as ready, as for the scheduler."""
    return next((each.status == "True" for each in node.status.conditions if each.type == "Ready"), True)


def counts_as_tainted(taint: Taint) -> bool:
    """Whether a taint keeps pods away and is not one of the node controller's, which cordoned and not ready show."""
    return taint.effect != "PreferNoSchedule" and not taint.key.startswith(_NODE_CONTROLLER)


def label_columns(nodes: Sequence[Node]) -> list[NodeLabelColumn]:
    """The labels that nodes can be grouped by: those with few values."""
    values: dict[str, dict[str, int]] = {}
    of: dict[str, list[int]] = {}
    for place, node in enumerate(nodes):
        for key, value in node.labels.items():
            known = values.setdefault(key, {})
            if len(known) > MOST_LABEL_VALUES:
                continue
            column = of.setdefault(key, [])
            column.extend([-1] * (place - len(column)))
            column.append(known.setdefault(value, len(known)))
    columns = []
    for key in sorted(values):
        known = values[key]
        if len(known) > MOST_LABEL_VALUES or (len(nodes) > 2 and len(known) == len(nodes)):
            continue
        column = of[key]
        column.extend([-1] * (len(nodes) - len(column)))
        columns.append(NodeLabelColumn(key=key, values=list(known), of=column))
    return sorted(columns, key=lambda each: (_rank(each.key), each.key))[:MOST_LABELS]


_FIRST: Final = (
    "topology.kubernetes.io/zone",
    "pool",
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/region",
)


def _rank(key: str) -> int:
    return _FIRST.index(key) if key in _FIRST else len(_FIRST)
