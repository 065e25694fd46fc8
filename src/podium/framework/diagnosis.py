"""Why no node would take a pod: per node, per plugin, and as the one sentence people read.

The sentence is kube-scheduler's, to the letter, because people search for it and tools parse it: a histogram of
reasons, sorted as text, then what preemption had to say.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster, Rows
from podium.framework.status import Code, Status
from podium.framework.verdict import Verdict

PASSED = -1


class Refusals:
    """What a run of filters said about some rows: for each, the plugin that turned it away and its code.

    `plugin`: index into `verdicts`, or PASSED; `code`: that plugin's number for the reason.
    """

    __slots__ = ("code", "plugin", "rows", "verdicts")

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self.plugin = np.full(len(rows), PASSED, dtype=np.int16)
        self.code = np.zeros(len(rows), dtype=np.int64)
        self.verdicts: list[tuple[str, Verdict]] = []

    def add(self, plugin: str, verdict: Verdict, undecided: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Record a plugin's verdict where no earlier one decided; returns which rows are still undecided."""
        turned_away = undecided & (verdict.codes != 0)
        if turned_away.any():
            self.plugin[turned_away] = len(self.verdicts)
            self.code[turned_away] = verdict.codes[turned_away]
            self.verdicts.append((plugin, verdict))
            undecided = undecided & ~turned_away
        return undecided

    @property
    def passed(self) -> NDArray[np.bool_]:
        passed: NDArray[np.bool_] = self.plugin == PASSED
        return passed

    def status(self, position: int) -> Status | None:
        """The status of the row at a position; None when it passed."""
        number = int(self.plugin[position])
        return None if number == PASSED else self._status(number, int(self.code[position]))

    def kinds(self, keep: NDArray[np.bool_]) -> Iterator[tuple[Status, Rows]]:
        """Each distinct status among the kept rows that were turned away, with the rows that have it."""
        refused = np.flatnonzero(keep & (self.plugin != PASSED))
        if not len(refused):
            return
        pairs = np.stack((self.plugin[refused].astype(np.int64), self.code[refused]))
        distinct, which = np.unique(pairs, axis=1, return_inverse=True)
        for kind in range(distinct.shape[1]):
            status = self._status(int(distinct[0, kind]), int(distinct[1, kind]))
            yield status, self.rows[refused[which.ravel() == kind]]

    def _status(self, number: int, code: int) -> Status:
        name, verdict = self.verdicts[number]
        return verdict.status_of(code).by(name)


class NodeStatuses:
    """The status of every node after the filters. Nodes never looked at share the `absent` status."""

    def __init__(self, absent: Status | None = None) -> None:
        self.absent = absent or Status(Code.UNRESOLVABLE)
        self._groups: list[tuple[Status, Rows]] = []
        self._single: dict[int, Status] = {}

    def add_group(self, status: Status, rows: Rows) -> None:
        self._groups.append((status, rows))

    def set(self, row: int, status: Status) -> None:
        """One node's status, whatever was said of it in a group."""
        self._single[row] = status

    def groups(self) -> Iterator[tuple[Status, list[int]]]:
        """Every explicit status with its rows; no row twice."""
        for status, rows in self._groups:
            yield status, [row for row in rows.tolist() if row not in self._single]
        for row, status in self._single.items():
            yield status, [row]

    def __len__(self) -> int:
        return sum(len(rows) for _, rows in self.groups())

    def get(self, row: int) -> Status:
        for status, rows in self.groups():
            if row in rows:
                return status
        return self.absent

    def with_code(self, code: Code, cluster: Cluster) -> Rows:
        """The present nodes whose status has this code, in visiting order."""
        order = cluster.order.rows
        marked = np.full(cluster.columns.rows, self.absent.code == code)
        for status, rows in self.groups():
            marked[rows] = status.code == code
        chosen: Rows = order[marked[order]]
        return chosen


class Diagnosis:
    """All that is known about why a pod found no node."""

    def __init__(self, nodes: int, statuses: NodeStatuses | None = None) -> None:
        self.nodes = nodes
        self.statuses = NodeStatuses() if statuses is None else statuses
        self.unschedulable_plugins: set[str] = set()
        self.pending_plugins: set[str] = set()
        self.pre_filter_message = ""
        self.post_filter_message = ""

    def blame(self, status: Status) -> None:
        """Note the plugin behind a rejection, so that its events wake the pod."""
        if not status.plugin:
            return
        if status.code == Code.PENDING:
            self.pending_plugins.add(status.plugin)
        else:
            self.unschedulable_plugins.add(status.plugin)

    @property
    def message(self) -> str:
        text = f"0/{self.nodes} nodes are available:"
        if self.pre_filter_message:
            text += f" {self.pre_filter_message}."
        else:
            counts = self._histogram()
            if counts:
                text += f" {', '.join(sorted(f'{count} {reason}' for reason, count in counts.items()))}."
        if self.post_filter_message:
            text += f" {self.post_filter_message}"
        return text

    def _histogram(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        explicit = 0
        for status, rows in self.statuses.groups():
            explicit += len(rows)
            for reason in status.reasons:
                counts[reason] = counts.get(reason, 0) + len(rows)
        if explicit < self.nodes:
            for reason in self.statuses.absent.reasons:
                counts[reason] = counts.get(reason, 0) + self.nodes - explicit
        return {reason: count for reason, count in counts.items() if count}


class Nomination(NamedTuple):
    """What PostFilter wants of the pod's nominated node: a name, or "" to clear it."""

    node_name: str


class PostFilterResult(NamedTuple):
    """PostFilter's answer. Success means room is being made; `nomination` None leaves the pod's nomination alone."""

    status: Status | None
    nomination: Nomination | None = None
