"""Keeps pods of an AppGroup near the pods that they depend on (NetworkOverhead).

    filter   refuses a node that more of these pods are too far from than near enough
    score    100 − 100·(cost − lowest) ÷ (highest − lowest), cost = the sum over these pods; 100 where all are equal

Pods that name no AppGroup, that depend on nothing, or on nothing that
has a node, go anywhere; so do all where the AppGroup or the NetworkTopology is not there.

Surprise: the answer key counts the moves of the pods depended on, not of all pods, so that the pods of a workload are
placed one after the other by the same answers.

A location is a region and a zone, and a node without the labels is at ("", "").

Thousands of nodes are at a handful of locations, so what it costs to reach a location is worked out once per pair of
locations and spread over the nodes by indexing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

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
from podium.cluster import Cluster, CountColumn, NodeInfo, Nodes, PlacedPod, PodQuery, QueryTerm
from podium.kube import Pod, selector_from_labels
from podium_plugins import app_group
from podium_plugins.app_group import APP_GROUP_LABEL, WORKLOAD_LABEL, AppGroups, Dependency
from podium_plugins.network_overhead import network_topology
from podium_plugins.network_overhead.network_topology import (
    REGION,
    ZONE,
    CostTable,
    NetworkOverheadArgs,
    NetworkTopologies,
)

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


# Locations, and what it costs to reach pods from there

SAME_ZONE: Final = 1
UNKNOWN: Final = 100
"""What it costs to reach a pod in the same zone, and one that no cost is known for."""
NOT_KNOWN: Final = -1
"""Stands for the cost of a pair where a maximum cannot be compared with it."""
FEW_LOCATIONS: Final = 256
"""Of up to so many locations all pairs are kept."""
MOST_MAXIMA: Final = 16
"""For so many maxima."""

Costs = NDArray[np.int64]
Effects = NDArray[np.float64]
"""[satisfied, violated, cost], by location of the pod and of the node: what one pod adds. All are whole numbers, in the
type that is multiplied fastest."""


class Locations:
    """The locations of all rows, as of one version of the labels, with what it costs to get from one to another."""

    def __init__(self, cluster: Cluster, table: CostTable) -> None:
        labels = cluster.labels
        self.version = labels.version
        self.table = table
        region, zone = labels.column(REGION), labels.column(ZONE)
        width = len(zone.values)
        pairs, of_row = np.unique(region.ids.astype(np.int64) * width + zone.ids, return_inverse=True)
        self.of_row: NDArray[np.intp] = np.where(cluster.present, of_row, len(pairs))
        """Row → number of its location; one more than there are where the node is gone."""
        self._regions = [region.values[pair // width] for pair in pairs.tolist()]
        self._zones = [zone.values[pair % width] for pair in pairs.tolist()]
        self._in_region = _filed(self._regions)
        self._in_zone = _filed(self._zones)
        self.nowhere = np.array([not r and not z for r, z in zip(self._regions, self._zones, strict=True)])
        """bool[locations]: those without region and zone, from where nothing is near."""
        self._effects: dict[int, Effects] = {}

    def __len__(self) -> int:
        return len(self._regions)

    def add_up(self, pods: NDArray[np.float64], most: int) -> Effects:
        """What pods add, so many at each location, where a cost up to `most` is near: per location of nodes."""
        if len(self) <= FEW_LOCATIONS:
            known = self._effects.get(most)
            if known is None:
                if len(self._effects) >= MOST_MAXIMA:
                    self._effects.clear()
                known = self._effects[most] = self._effects_of(range(len(self)), most)
            added: Effects = np.matmul(pods, known)
            return added
        total = np.zeros((3, len(self)))
        held = np.flatnonzero(pods)
        for start in range(0, len(held), FEW_LOCATIONS):
            some = held[start : start + FEW_LOCATIONS]
            total += np.matmul(pods[some], self._effects_of(some.tolist(), most))
        return total

    def _effects_of(self, numbers: Sequence[int], most: int) -> Effects:
        """The effects of pods at some locations."""
        costs = np.array([self._costs_to(number) for number in numbers])
        known = costs != NOT_KNOWN
        near = known & (costs <= most)
        near[np.arange(len(numbers)), numbers] = ~self.nowhere[list(numbers)]
        far = known & ~near
        far[self.nowhere[list(numbers)]] = True
        return np.stack((near, far, np.where(known, costs, UNKNOWN))).astype(np.float64)

    def _costs_to(self, number: int) -> Costs:
        """From each location to one: the cost that counts, NOT_KNOWN where there is none."""
        costs = np.full(len(self), NOT_KNOWN, dtype=np.int64)
        region, zone = self._regions[number], self._zones[number]
        if self.nowhere[number]:
            return costs
        for origin, cost in self.table.regions.get(region, {}).items():
            if origin:
                costs[self._in_region.get(origin, [])] = cost
        in_region = self._in_region[region]
        costs[in_region] = NOT_KNOWN
        for origin, cost in self.table.zones.get(zone, {}).items():
            if origin:
                costs[np.intersect1d(self._in_zone.get(origin, []), in_region).astype(np.intp)] = cost
        costs[number] = SAME_ZONE
        return costs


def _filed(values: list[str]) -> dict[str, list[int]]:
    filed: dict[str, list[int]] = {}
    for number, value in enumerate(values):
        filed.setdefault(value, []).append(number)
    return filed


Sums = NDArray[np.int64]


class PeerCosts:
    """What one pod finds: int64[rows] each. `moved` is what a dry run changed: pods that came to a row, or left it."""

    __slots__ = ("costs", "moved", "satisfied", "violated")

    def __init__(self, satisfied: Sums, violated: Sums, costs: Sums) -> None:
        self.satisfied = satisfied
        self.violated = violated
        self.costs = costs
        self.moved: dict[int, int] = {}

    def clone(self) -> PeerCosts:
        """For a dry run: it only ever moves pods of the row that it is about, where they are satisfied."""
        copy = PeerCosts(self.satisfied, self.violated, self.costs)
        copy.moved = dict(self.moved)
        return copy


def peer_costs(cluster: Cluster, locations: Locations, peers: list[tuple[Dependency, CountColumn]]) -> PeerCosts | None:
    """What it costs each node to reach the pods that a pod depends on, and how many are too far.

    For a node N and a pod on H that the pod depends on, the first line that holds counts:

        N = H                              satisfied                          0
        H has neither region nor zone      violated                           100
        the same region and zone           satisfied                          1
        the cost is known                  satisfied if ≤ maximum, or violated   the cost
        otherwise                          neither                            100

    Between zones of one region the cost is that of the zones, else that of the regions. Pods on nodes that are gone do
    not count.

    The sums over all peers; None where there are none.
    """
    of_row, size = locations.of_row, len(locations)
    sums = np.zeros((3, size + 1))
    found = 0.0
    for dependency, column in peers:
        at_location = np.bincount(of_row, weights=column.per_row, minlength=size + 1)[:size].astype(np.float64)
        found += float(at_location.sum())
        sums[:, :size] += locations.add_up(at_location, dependency.max_network_cost)
    if not found:
        return None
    satisfied, violated, costs = sums.astype(np.int64).take(of_row, axis=1)
    # On the node itself a peer costs nothing and is satisfied, whatever its location says.
    nowhere = np.append(locations.nowhere, False)
    for _dependency, column in peers:
        rows = np.flatnonzero(column.per_row)
        own, lost = column.per_row[rows], nowhere[of_row[rows]]
        satisfied[rows] += own * lost
        violated[rows] -= own * lost
        costs[rows] -= own * np.where(lost, UNKNOWN, SAME_ZONE)
    return PeerCosts(satisfied, violated, costs)
