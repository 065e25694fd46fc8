"""Nodes as plugins see them: many at once as columns, or one at a time.

`Nodes` is a choice of rows; every property is an array with one entry per chosen node, so a plugin's arithmetic is
the same for the whole cluster, for the feasible nodes, or for the single row that changed. `NodeInfo` is the slow and
simple form for plugins that prefer to look at one node.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from podium.cluster.columns import Interned
from podium.cluster.images import NodeImages
from podium.cluster.resources import NUMBER, Amounts
from podium.cluster.state import Cluster, PlacedPod
from podium.kube import Node, Pod, Taint
from podium.kube.selector import NodeTerm, NodeTerms, Requirement

Mask = NDArray[np.bool_]
Rows = NDArray[np.intp]
T = TypeVar("T", bound=Hashable)


class Nodes:
    """Some rows of the cluster (all of them when `rows` is None), column by column.

    With all rows, entries of nodes that are gone are included; the runtime leaves them out of every answer.
    """

    bare = False
    """Whether the nodes are to be taken as having no pods of their own (see `BareNodes`)."""

    def __init__(self, cluster: Cluster, rows: Rows | None = None) -> None:
        self.cluster = cluster
        self._rows = rows

    def __len__(self) -> int:
        return self.cluster.columns.rows if self._rows is None else len(self._rows)

    @property
    def chosen(self) -> Rows | None:
        """The chosen rows, None for all: what the columns of `cluster` are indexed with."""
        return self._rows

    @cached_property
    def rows(self) -> Rows:
        """The number of each node: its place in the columns of `cluster`."""
        return np.arange(self.cluster.columns.rows) if self._rows is None else self._rows

    @property
    def names(self) -> Sequence[str]:
        """The names of the nodes."""
        names = self.cluster.names
        return names if self._rows is None else [names[row] for row in self._rows.tolist()]

    def info(self, index: int) -> NodeInfo:
        """The node at a position of this choice, on its own."""
        return NodeInfo(self.cluster, index if self._rows is None else int(self._rows[index]))

    def pick(self, column: NDArray[Any]) -> NDArray[Any]:
        """The chosen entries of any array over all rows (last axis)."""
        return column if self._rows is None else column.take(self._rows, axis=-1)

    # Resources: cpu in thousandths, the rest in units

    def allocatable(self, resource: str) -> Amounts:
        """What each node offers: cpu in thousandths, everything else in units."""
        return self.pick(self.cluster.resources.allocatable_of(resource))

    def requested(self, resource: str) -> Amounts:
        """The sum of the requests of the pods on each node."""
        return self.pick(self.cluster.resources.requested_of(resource))

    def nonzero_requested(self, resource: str) -> Amounts:
        """Like `requested`, but pods without a cpu or memory request count a default; other resources as they are."""
        if resource == "cpu":
            return self.pick(self.cluster.resources.nonzero[0])
        if resource == "memory":
            return self.pick(self.cluster.resources.nonzero[1])
        return self.requested(resource)

    @property
    def pod_count(self) -> Amounts:
        """How many pods are on each node."""
        return self.pick(self.cluster.resources.pod_count)

    @property
    def allowed_pods(self) -> Amounts:
        """How many pods each node takes."""
        return self.pick(self.cluster.resources.allowed_pods)

    # What the node objects say

    def label_ids(self, key: str) -> NDArray[np.int32]:
        """The number of each node's value for a label key, 0 where the label is missing."""
        return self.pick(self.cluster.labels.column(key).ids)

    def has_label(self, key: str) -> Mask:
        """Which nodes carry a label, whatever its value."""
        present: Mask = self.label_ids(key) != 0
        return present

    def label_is(self, key: str, value: str) -> Mask:
        """Which nodes carry a label with this value."""
        column = self.cluster.labels.column(key)
        equal: Mask = self.pick(column.ids) == column.id_of.get(value, -1)
        return equal

    def match(self, requirements: Iterable[Requirement]) -> Mask:
        """Which nodes' labels meet every requirement."""
        return self.cluster.labels.match(requirements, self._rows)

    def match_node_selector(self, selector: NodeTerms) -> Mask:
        """Which nodes match a compiled node selector: one of its terms."""
        answer: Mask | None = None
        for term in selector.terms:
            matching = self.match_node_term(term)
            answer = matching if answer is None else answer | matching
        return np.zeros(len(self), dtype=np.bool_) if answer is None else answer

    def match_node_term(self, term: NodeTerm) -> Mask:
        """Which nodes match one term: its labels and its fields."""
        if term.errors:
            return np.zeros(len(self), dtype=np.bool_)
        answer = self.match(term.requirements)
        for requirement in term.fields:
            answer &= self._match_field(requirement)
        return answer

    def _match_field(self, requirement: Requirement) -> Mask:
        """Only the node's name can be asked for; any other field reads as empty."""
        named = np.zeros(self.cluster.columns.rows, dtype=np.bool_)
        if requirement.key == "metadata.name":
            row_of = self.cluster.row_of
            named[[row_of[name] for name in requirement.values if name in row_of]] = True
        elif "" in requirement.values:
            named[:] = True
        named = self.pick(named)
        return named if requirement.operator == "In" else ~named

    @property
    def unschedulable(self) -> Mask:
        """Which nodes are cordoned."""
        return self.pick(self.cluster.unschedulable)

    def ask_taints(self, question: Callable[[tuple[Taint, ...]], Any], dtype: DTypeLike) -> NDArray[Any]:
        """An answer about each node's taints, asked once per distinct list of taints."""
        return self._ask(self.cluster.taints, question, dtype)

    def any_taints(self, question: Callable[[tuple[Taint, ...]], Any]) -> bool:
        """Whether the answer is yes for some list of taints that a node, chosen or not, may have."""
        return any(map(question, self.cluster.taints.values))

    def ask_features(self, question: Callable[[frozenset[str]], Any], dtype: DTypeLike) -> NDArray[Any]:
        """An answer about each node's declared features, asked once per distinct set."""
        return self._ask(self.cluster.features, question, dtype)

    def _ask(self, values: Interned[T], question: Callable[[T], Any], dtype: DTypeLike) -> NDArray[Any]:
        return values.ask(question, dtype, self._rows)

    def annotations(self, key: str) -> list[str | None]:
        """The annotation of each node; None where it has none."""
        nodes = self.cluster.nodes
        chosen = nodes if self._rows is None else [nodes[row] for row in self._rows.tolist()]
        return [None if node is None else node.annotations.get(key) for node in chosen]


class NodeInfo:
    """One node with its pods: what `filter_node` and `score_node` get."""

    __slots__ = ("_cluster", "row")

    def __init__(self, cluster: Cluster, row: int) -> None:
        self._cluster = cluster
        self.row = row

    @property
    def name(self) -> str:
        """The name of the node."""
        return self._cluster.names[self.row]

    @property
    def node(self) -> Node:
        """The Node object."""
        node = self._cluster.nodes[self.row]
        assert node is not None, "a cycle only looks at nodes that exist"
        return node

    @property
    def labels(self) -> dict[str, str]:
        """The labels of the node."""
        return self.node.labels

    @property
    def annotations(self) -> dict[str, str]:
        """The annotations of the node."""
        return self.node.annotations

    @property
    def placed(self) -> Iterable[PlacedPod]:
        """The pods on the node, each with its row and whether it is assumed."""
        return self._cluster.pods_on[self.row].values()

    @property
    def pods(self) -> list[Pod]:
        """The pods on the node, assumed ones included."""
        return [placed.pod for placed in self.placed]

    def allocatable(self, resource: str) -> int:
        """What the node offers: cpu in thousandths, everything else in units."""
        resources, number = self._cluster.resources, NUMBER.get(resource)
        if number is None:
            return resources.scalar_on(resource, self.row)[0]
        return int(resources.allocatable[number, self.row])

    def requested(self, resource: str) -> int:
        """The sum of the requests of its pods."""
        resources, number = self._cluster.resources, NUMBER.get(resource)
        if number is None:
            return resources.scalar_on(resource, self.row)[1]
        return int(resources.requested[number, self.row])

    @property
    def allowed_pods(self) -> int:
        """How many pods the node takes."""
        return int(self._cluster.resources.allowed_pods[self.row])


class BareNodes(Nodes):
    """Nodes as score plugins see them once an extender gave back whole nodes: with nothing on them.

    kube-scheduler takes such nodes from the extender's reply and knows nothing else of them, so what looks at the node
    itself (its pods, what they request, its images) finds it empty. What is counted over the whole cluster, such as
    pods per zone, was counted before and stands.
    """

    bare = True


@contextmanager
def without_pods(cluster: Cluster) -> Iterator[None]:
    """Inside, no row has pods, requests or images; the cluster itself must not be changed meanwhile."""
    resources, images, pods_on = cluster.resources, cluster.images, cluster.pods_on
    cluster.resources, cluster.images = resources.unused(cluster.columns), NodeImages()
    cluster.pods_on = [{} for _ in pods_on]
    try:
        yield
    finally:
        cluster.resources, cluster.images, cluster.pods_on = resources, images, pods_on
