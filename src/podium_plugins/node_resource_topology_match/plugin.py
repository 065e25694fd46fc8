"""Places pods by NUMA zones: turns away nodes no zone of which a pod fits, and scores the others
(NodeResourceTopologyMatch).

    filter    on nodes whose kubelet aligns to a single NUMA node: the pod, or each container, fits a zone
    score     Guaranteed pods by the scoring strategy; any other pod 100 everywhere
    reserve   what is known of the node changes, as its cache says

Zones are reported by an agent on each node in a NodeResourceTopology named after the node. A node without one passes
and scores 0; one of which nothing may be used (see the caches) is rejected. Under the policy restricted the kubelet
turns pods away, too, but by rules that no report tells.

Surprise: a report is part of its node, so a new one is a change of the node, in the journal of nodes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
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
    NodePart,
    Plugin,
    Resource,
    Scores,
    Status,
    Verdict,
)
from podium.cluster import NodeInfo, Nodes, PlacedPod
from podium.kube import Pod
from podium_plugins.node_resource_topology_match.alignment import (
    ALIGNED,
    aligned_rows,
    first_misfit,
    some_zone_fits,
    zone_refusals,
)
from podium_plugins.node_resource_topology_match.args import (
    BALANCED_ALLOCATION,
    ENABLED,
    LEAST_NUMA_NODES,
    MOST_ALLOCATED,
    NodeResourceTopologyMatchArgs,
    ZoneScoringStrategy,
)
from podium_plugins.node_resource_topology_match.balanced_allocation import balanced_allocation
from podium_plugins.node_resource_topology_match.least_allocated import least_allocated
from podium_plugins.node_resource_topology_match.least_numa_nodes import LeastNumaNodes
from podium_plugins.node_resource_topology_match.most_allocated import most_allocated
from podium_plugins.node_resource_topology_match.strategy import ZoneStrategy
from podium_plugins.node_resource_topology_match.topology_cache import (
    DiscardReservedCache,
    OverReserveCache,
    PassThroughCache,
    TopologyCache,
)
from podium_plugins.node_resource_topology_match.topology_object import (
    RESOURCE,
    SINGLE_NUMA_NODE,
    VERSION,
    ManagerSettings,
)
from podium_plugins.node_resource_topology_match.victims import TakenOff, give_back
from podium_plugins.node_resource_topology_match.zone_needs import APP, INIT, SIDECAR, ZoneNeeds, needs_of

NAME: Final = "NodeResourceTopologyMatch"
STALE: Final = Status.unschedulable("invalid node topology data")
CANNOT_ALIGN_POD: Final = Status.unschedulable("cannot align pod")
CANNOT_ALIGN: Final = {kind: Status.unschedulable(f"cannot align {kind}") for kind in (INIT, SIDECAR, APP)}
STALE_CODE, POD_CODE, FIRST_CONTAINER = 1, 2, 3


class NodeResourceTopologyMatch(Plugin):
    name = NAME
    trusted = True
    Args = NodeResourceTopologyMatchArgs
    depends_on = DependsOn(node=NodePart.PODS, claims=False, kinds=())
    resources = (f"{RESOURCE}/{VERSION}",)

    def __init__(self, args: NodeResourceTopologyMatchArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._cache = _cache(args, handle)
        self._zones = self._cache.zones
        self._strategy = _strategy(args.scoring_strategy)
        self._gives_back = self._cache if isinstance(self._cache, OverReserveCache) else None
        if args.preemption_mode != ENABLED:
            self._gives_back = None
        self.depends_on = DependsOn(node=self._cache.node_part, claims=False, kinds=())

    def interests(self) -> Iterable[Interest]:
        node = Action.ADD | Action.UPDATE_NODE_ALLOCATABLE
        return [
            Interest(Resource.ASSIGNED_POD, Action.ALL, self._pod_helps, by_signature=True),
            Interest(Resource.NODE, node),
            Interest(RESOURCE, Action.ALL, _says_something_else, by_signature=True),
        ]

    def _pod_helps(self, _pod: Pod, before: Pod | None, after: Pod | None) -> bool:
        """Whether a pod went, or what is known of its node is new with this event."""
        other = before if after is None else after
        return after is None or (other is not None and self._cache.renewed(other.node_name))

    def observe(self, resource: str, before: Any, after: Any) -> None:
        if resource == Resource.POD:
            self._cache.observe(before, after)

    # Filter

    def pre_filter(self, cycle: Cycle) -> Status | None:
        if needs_of(cycle.pod, cycle.facts).indifferent:
            return SKIP
        if self._gives_back is not None:
            cycle.data[NAME] = TakenOff()
        return None

    def add_pod(self, cycle: Cycle, placed: PlacedPod) -> None:
        if NAME in cycle.data:
            cycle.data[NAME].add(placed)

    def remove_pod(self, cycle: Cycle, placed: PlacedPod) -> None:
        if NAME in cycle.data:
            cycle.data[NAME].remove(placed)

    def filter(self, cycle: Cycle, nodes: Nodes) -> Verdict:
        zones, needs, rows = self._zones, needs_of(cycle.pod, cycle.facts), nodes.rows
        zones.catch_up()
        codes = np.zeros(len(rows), dtype=np.int64)
        settings = zones.settings.numbers[rows]
        for number, each in enumerate(zones.settings.values):
            if each is None or not each.aligns:
                continue
            where = np.flatnonzero(settings == number)
            if len(where):
                misfits = aligned_rows(zones, cycle.cluster, needs, rows[where], by_pod=each.by_pod)
                refused = POD_CODE if each.by_pod else misfits + FIRST_CONTAINER
                codes[where] = np.where(misfits == ALIGNED, 0, refused)
        codes[zones.stale[rows] & (settings != 0)] = STALE_CODE
        reasons = _reasons(needs)
        taken_off = cycle.data[NAME].rows if NAME in cycle.data else ()
        for index in np.flatnonzero(np.isin(rows, list(taken_off))).tolist() if taken_off else ():
            status = self.filter_node(cycle, nodes.info(index))
            codes[index] = 0
            if status is not None:
                reasons.append(status)
                codes[index] = len(reasons)
        return Verdict(codes, lambda code: reasons[code - 1])

    def filter_node(self, cycle: Cycle, node: NodeInfo) -> Status | None:
        zones, row = self._zones, node.row
        zones.catch_up()
        settings = zones.settings.values[zones.settings.numbers.item(row)]
        if settings is None:
            return None
        if zones.stale.item(row):
            return STALE
        if settings.policy != SINGLE_NUMA_NODE:
            return None
        needs = needs_of(cycle.pod, cycle.facts)
        victims = cycle.data[NAME].on(row) if NAME in cycle.data else ()
        if victims and self._gives_back is not None:
            return self._judge_without(cycle, node, settings, needs, victims)
        if settings.by_pod:
            return None if some_zone_fits(zones, cycle.cluster, row, needs.whole) else CANNOT_ALIGN_POD
        if needs.single:
            only = needs.containers[0]
            return None if some_zone_fits(zones, cycle.cluster, row, only.request) else CANNOT_ALIGN[only.kind]
        left = {name: zones.available_on(name, row) for name in needs.resources}
        return _status(first_misfit(left, cycle.cluster, row, needs, by_pod=False), settings, needs)

    def _judge_without(
        self, cycle: Cycle, node: NodeInfo, settings: ManagerSettings, needs: ZoneNeeds, victims: Collection[Pod]
    ) -> Status | None:
        """A node's status in a dry run that took pods off it."""
        zones, row = self._zones, node.row
        assert self._gives_back is not None
        left = {name: zones.available_on(name, row) for name in needs.resources}
        problem = give_back(self._gives_back, node.name, row, victims, left)
        if problem:
            return Status.unschedulable(f"eviction simulation in NRT is not possible:{problem}")
        return _status(first_misfit(left, cycle.cluster, row, needs, by_pod=settings.by_pod), settings, needs)

    def explain(self, pod: Pod) -> list[str]:
        """Which zone refused the pod, and why."""
        self._zones.catch_up()
        cluster = self.handle.cluster
        return zone_refusals(self._zones, cluster, needs_of(pod, cluster.facts.of(pod)))

    # Score

    def score(self, cycle: Cycle, nodes: Nodes) -> Scores | int:
        zones, needs, rows = self._zones, needs_of(cycle.pod, cycle.facts), nodes.rows
        if not needs.guaranteed:
            return MAX_SCORE
        zones.catch_up()
        scores = np.zeros(len(rows), dtype=np.int64)
        settings = zones.settings.numbers[rows]
        for number, each in enumerate(zones.settings.values):
            where = np.flatnonzero((settings == number) & ~zones.stale[rows])
            if each is not None and len(where):
                scores[where] = self._strategy.scores(zones, needs, each, rows[where])
        return scores

    def score_node(self, cycle: Cycle, node: NodeInfo) -> int:
        zones, row = self._zones, node.row
        needs = needs_of(cycle.pod, cycle.facts)
        if not needs.guaranteed:
            return MAX_SCORE
        zones.catch_up()
        settings = zones.settings.values[zones.settings.numbers.item(row)]
        if settings is None or zones.stale.item(row):
            return 0
        return self._strategy.score(zones, needs, settings, row)

    # After the choice

    def reserve(self, cycle: Cycle, node_name: str) -> None:
        self._cache.reserve(cycle.pod, node_name)

    def unreserve(self, cycle: Cycle, node_name: str) -> None:
        self._cache.release(cycle.pod, node_name)

    def post_bind(self, cycle: Cycle, node_name: str) -> None:
        self._cache.release(cycle.pod, node_name)


def _cache(args: NodeResourceTopologyMatchArgs, handle: Handle) -> TopologyCache:
    if args.discard_reserved_nodes:
        return DiscardReservedCache(handle.cluster, handle.problems)
    if args.over_reserves:
        return OverReserveCache.of(handle, args.cache)
    return PassThroughCache(handle.cluster, handle.problems)


def _strategy(args: ZoneScoringStrategy) -> ZoneStrategy:
    if args.type == LEAST_NUMA_NODES:
        return LeastNumaNodes()
    if args.type == BALANCED_ALLOCATION:
        return balanced_allocation()
    return (most_allocated if args.type == MOST_ALLOCATED else least_allocated)(args.weights)


def _status(misfit: int, settings: ManagerSettings, needs: ZoneNeeds) -> Status | None:
    if misfit == ALIGNED:
        return None
    return CANNOT_ALIGN_POD if settings.by_pod else CANNOT_ALIGN[needs.containers[misfit].kind]


def _reasons(needs: ZoneNeeds) -> list[Status]:
    """What the codes of a verdict stand for, from 1 on."""
    return [STALE, CANNOT_ALIGN_POD, *(CANNOT_ALIGN[each.kind] for each in needs.containers)]


def _says_something_else(_pod: Pod, before: Any, after: Any) -> bool:
    """Whether a report came, went, or differs in more than its version."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return True
    fields = ("zones", "attributes", "topologyPolicies")
    return any(before.get(field) != after.get(field) for field in fields) or _annotations(before) != _annotations(after)


def _annotations(item: dict[str, Any]) -> Any:
    metadata = item.get("metadata")
    return metadata.get("annotations") if isinstance(metadata, dict) else None
