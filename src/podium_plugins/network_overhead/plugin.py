"""Keeps pods of an AppGroup near the pods that they depend on (NetworkOverhead).

    filter   refuses a node that more of these pods are too far from than near enough
    score    100 − 100·(cost − lowest) ÷ (highest − lowest), cost = the sum over these pods; 100 where all are equal

`locations` has what is near and what it costs. Pods that name no AppGroup, that depend on nothing, or on nothing that
has a node, go anywhere; so do all where the AppGroup or the NetworkTopology is not there.

Surprise: the answer key counts the moves of the pods depended on, not of all pods, so that the pods of a workload are
placed one after the other by the same answers.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from functools import lru_cache
from typing import Any, Final

import numpy as np

from podium import (
    MAX_SCORE,
    SKIP,
    Action,
    Cycle,
    DependsOn,
    Handle,
    Interest,
    Plugin,
    Resource,
    Scores,
    Status,
    Verdict,
)
from podium.cluster import CountColumn, NodeInfo, Nodes, PlacedPod, PodQuery, QueryTerm
from podium.kube import Pod, selector_from_labels
from podium_plugins import app_group
from podium_plugins.app_group import APP_GROUP_LABEL, WORKLOAD_LABEL, AppGroups, Dependency
from podium_plugins.network_overhead import network_topology
from podium_plugins.network_overhead.locations import Locations, PeerCosts, peer_costs
from podium_plugins.network_overhead.network_topology import CostTable, NetworkOverheadArgs, NetworkTopologies

NAME: Final = "NetworkOverhead"


class NetworkOverhead(Plugin):
    name = NAME
    trusted = True
    Args = NetworkOverheadArgs
    depends_on = DependsOn(claims=False, kinds=())
    resources = (f"{app_group.RESOURCE}/v1alpha1", f"{network_topology.RESOURCE}/v1alpha1")

    def __init__(self, args: NetworkOverheadArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self.args: NetworkOverheadArgs = args
        self._groups = AppGroups(handle)
        self._topologies = NetworkTopologies(handle, args)
        self._locations: Locations | None = None

    def interests(self) -> Iterable[Interest]:
        moved = Action.ADD | Action.DELETE | Action.UPDATE_POD_LABEL
        return [
            Interest(Resource.ASSIGNED_POD, moved, _same_group, by_signature=True),
            Interest(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
            Interest(app_group.RESOURCE, Action.ALL, _spec_changed, by_signature=True),
            Interest(network_topology.RESOURCE, Action.ALL, _spec_changed, by_signature=True),
        ]

    def answer_key(self, pod: Pod) -> Hashable:
        if APP_GROUP_LABEL not in pod.metadata.labels:
            return ()
        dependencies, labels = self._dependencies(pod), self.handle.cluster.labels
        if not dependencies:
            return (0,)
        versions = (column.version for _dependency, column in self._peers(pod, dependencies))
        return dependencies, self._topologies.version, labels.version, *versions

    # Filter

    def pre_filter(self, cycle: Cycle) -> Status | None:
        found = cycle.data[NAME] = self._work_out(cycle)
        return SKIP if found is None else None

    def add_pod(self, cycle: Cycle, placed: PlacedPod) -> None:
        self._move(cycle, placed, 1)

    def remove_pod(self, cycle: Cycle, placed: PlacedPod) -> None:
        self._move(cycle, placed, -1)

    def _move(self, cycle: Cycle, placed: PlacedPod, sign: int) -> None:
        labels, found = placed.pod.labels, self._found(cycle)
        if found is None or labels.get(APP_GROUP_LABEL) != cycle.pod.labels.get(APP_GROUP_LABEL):
            return
        selector = labels.get(WORKLOAD_LABEL)
        peers = sum(each.selector == selector for each in self._dependencies(cycle.pod))
        if peers:
            found.moved[placed.row] = found.moved.get(placed.row, 0) + sign * peers

    def filter(self, cycle: Cycle, nodes: Nodes) -> Verdict | None:
        found = self._found(cycle)
        if found is None:
            return None
        satisfied, violated = found.satisfied, found.violated
        if found.moved:
            satisfied = satisfied.copy()
            for row, number in found.moved.items():
                satisfied[row] += number
        too_far = nodes.pick(violated) > nodes.pick(satisfied)
        if not too_far.any():
            return None
        names = cycle.cluster.names
        return Verdict(
            np.where(too_far, nodes.rows + 1, 0),
            lambda code: _too_far(names[code - 1], int(satisfied[code - 1]), int(violated[code - 1])),
        )

    def filter_node(self, cycle: Cycle, node: NodeInfo) -> Status | None:
        found = self._found(cycle)
        if found is None:
            return None
        satisfied, violated = found.satisfied.item(node.row), found.violated.item(node.row)
        satisfied += found.moved.get(node.row, 0)
        return _too_far(node.name, satisfied, violated) if violated > satisfied else None

    # Score

    def pre_score(self, cycle: Cycle, _nodes: Nodes) -> Status | None:
        return SKIP if self._found(cycle) is None else None

    def score(self, cycle: Cycle, nodes: Nodes) -> Scores | int:
        found = self._found(cycle)
        if found is None:
            return 0
        costs: Scores = nodes.pick(found.costs)
        return costs

    def score_node(self, cycle: Cycle, node: NodeInfo) -> int:
        found = self._found(cycle)
        return 0 if found is None else int(found.costs.item(node.row))

    def normalize(self, _cycle: Cycle, _nodes: Nodes, scores: Scores) -> Scores:
        lowest, highest = int(scores.min(initial=2**62)), int(scores.max(initial=0))
        if not highest:
            return scores
        if lowest >= highest:
            return np.full_like(scores, MAX_SCORE)
        return MAX_SCORE - (scores - lowest) * MAX_SCORE // (highest - lowest)

    # What it depends on

    def _found(self, cycle: Cycle) -> PeerCosts | None:
        if NAME not in cycle.data:
            cycle.data[NAME] = self._work_out(cycle)
        found: PeerCosts | None = cycle.data[NAME]
        return found

    def _work_out(self, cycle: Cycle) -> PeerCosts | None:
        dependencies = self._dependencies(cycle.pod)
        table = self._topologies.table() if dependencies else None
        if table is None:
            return None
        peers = [(each, column) for each, column in self._peers(cycle.pod, dependencies) if column.total]
        return peer_costs(cycle.cluster, self._located(table), peers) if peers else None

    def _dependencies(self, pod: Pod) -> tuple[Dependency, ...]:
        group = self._groups.of_pod(pod, self.args.namespaces)
        return () if group is None else group.dependencies.get(pod.metadata.labels.get(WORKLOAD_LABEL, ""), ())

    def _peers(self, pod: Pod, dependencies: Iterable[Dependency]) -> list[tuple[Dependency, CountColumn]]:
        """How many pods that a pod depends on are on each row, by dependency."""
        name, counts = pod.metadata.labels[APP_GROUP_LABEL], self.handle.cluster.counts
        return [(each, counts.column(_query(name, each.selector))) for each in dependencies]

    def _located(self, table: CostTable) -> Locations:
        known, cluster = self._locations, self.handle.cluster
        if known is None or known.version != cluster.labels.version or known.table is not table:
            known = self._locations = Locations(cluster, table)
        return known


@lru_cache(maxsize=4096)
def _query(group: str, selector: str) -> PodQuery:
    """The pods of a workload, in whatever namespace."""
    labels = selector_from_labels({APP_GROUP_LABEL: group, WORKLOAD_LABEL: selector})
    return PodQuery((QueryTerm(None, labels),))


def _too_far(node: str, satisfied: int, violated: int) -> Status:
    return Status.unschedulable(
        f"Node {node} does not meet several network requirements from Workload dependencies: "
        f"Satisfied: {satisfied} Violated: {violated}"
    )


def _same_group(pod: Pod, before: Pod | None, after: Pod | None) -> bool:
    group = pod.labels.get(APP_GROUP_LABEL)
    return any(other is not None and other.labels.get(APP_GROUP_LABEL) == group for other in (before, after))


def _spec_changed(_pod: Pod, before: Any, after: Any) -> bool:
    """Whether an object came, went, or says something else: its status means nothing."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return True
    return bool(before.get("spec") != after.get("spec"))
