"""Filters and scores nodes by resources (NodeResourcesFit).

The pod's requests are read three ways. The filter takes what is written on pod and containers; the score takes the
containers only, with 100m and 200 MiB for a container that asks for nothing, and compares with nodes counted the same
way. Where a device class stands behind a resource, the devices of nodes that offer none of it count instead: the filter
leaves them to DynamicResources, the score counts them.

Also scores placements of a PodGroup by how full they would be: MostAllocated over the sums of all their nodes.

    score of a resource = 100 × (requested on the nodes + requested by the members) / allocatable
    score               = Σ weight × score / Σ weight       (resources that no node offers are left out)

An extended resource counts only where a member asks for it. The strategy that the profile is configured with does not
matter here; its resources and weights do.

Also decides which events may make room for a pod that did not fit.

A pod that leaves or shrinks helps if it held something on a node. A node that comes or grows helps if the pod would fit
it when empty and something the pod asks for, or the number of pods it takes, has grown. Resources that a device class
stands behind count as grown on a node that offers none of them. A device class that comes, or takes another name, helps
pods that ask for it by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence, Set

import numpy as np

from podium.cluster import Cluster, NodeInfo, Nodes
from podium.framework import (
    MAX_SCORE,
    Action,
    Cycle,
    DependsOn,
    Handle,
    Interest,
    NodePart,
    Plugin,
    PluginError,
    Resource,
    Scores,
    Status,
    Verdict,
)
from podium.framework.protocols import TriedPlacement
from podium.kube import DeviceClass, Node, Pod
from podium.kube.extended_resources import DEVICE_CLASS_PREFIX, wanted_device_resources
from podium.kube.requests import (
    PODS,
    fit_requests,
    is_scalar_resource_name,
    offered,
    pod_requests,
    requested,
    score_requests,
)
from podium.placement.devices.totals import DeviceTotals
from podium.placement.devices.uses import DeviceResourceNames, uses_in
from podium.placement.resource_usage import ResourceSpec, Weighed, columns_of, device_resources, usage_on, weigh
from podium.placement.shape import Shape
from podium.plugins.node_resources_fit.args import (
    LEAST_ALLOCATED,
    MOST_ALLOCATED,
    NodeResourcesFitArgs,
    ScoringStrategy,
)
from podium.plugins.node_resources_fit.insufficient_resources import NO_NAMES, Wants
from podium.plugins.node_resources_fit.least_allocated import LeastAllocated
from podium.plugins.node_resources_fit.most_allocated import MostAllocated
from podium.plugins.node_resources_fit.requested_to_capacity_ratio import RequestedToCapacityRatio
from podium.plugins.node_resources_fit.strategy import EXACT, ResourceStrategy

NAME = "NodeResourcesFit"
PRE_FILTER = f"PreFilter{NAME}"


class NodeResourcesFit(Plugin):
    name = NAME
    trusted = True
    Args = NodeResourcesFitArgs
    depends_on = DependsOn(node=NodePart.TOTALS, claims=False)

    def __init__(self, args: NodeResourcesFitArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._ignored = frozenset(args.ignored_resources or ())
        self._ignored_groups = frozenset(args.ignored_resource_groups or ())
        self._resources = args.scoring_strategy.resources
        self._strategy = _strategy(args.scoring_strategy)
        uses = uses_in(handle)
        self._devices = uses.resources
        self._totals = DeviceTotals(uses)

    def answer_key(self, pod: Pod) -> Hashable:
        """Which resources classes stand behind; and devices are not rows, where they are scored."""
        names = wanted_device_resources(pod)
        if not names:
            return ()
        scored = {each.name for each in self._resources}
        return None if self._totals.names([name for name in names if name in scored]) else self._devices.version

    def interests(self) -> Iterable[Interest]:
        return [
            Interest(Resource.POD, Action.DELETE | Action.UPDATE_POD_SCALE_DOWN, frees_resources, by_signature=True),
            Interest(
                Resource.NODE,
                Action.ADD | Action.UPDATE_NODE_ALLOCATABLE,
                offers_more(self._devices),
                by_signature=True,
            ),
            Interest(Resource.DEVICE_CLASS, Action.ADD | Action.UPDATE, names_resource, by_signature=True),
        ]

    # Filter

    def pre_filter(self, cycle: Cycle) -> None:
        wants = self._notes(cycle)[0]
        names = wants.may_be_devices
        cycle.data[PRE_FILTER] = wants, frozenset(self._totals.names(names)) if names else NO_NAMES

    def filter(self, cycle: Cycle, nodes: Nodes) -> Verdict | None:
        wants, devices = _wants(cycle)
        return wants.judge(nodes, devices)

    def filter_node(self, cycle: Cycle, node: NodeInfo) -> Status | None:
        wants, devices = _wants(cycle)
        code = wants.judge_row(cycle.cluster, node.row, devices)
        return wants.status(code) if code else None

    # Score

    def pre_score(self, _cycle: Cycle, _nodes: Nodes) -> None:
        """There is nothing left to prepare; the point exists so that a profile may name it."""

    def score(self, cycle: Cycle, nodes: Nodes) -> Scores:
        strategy, (_wants, weighed, scalar) = self._strategy, self._notes(cycle)
        if not weighed:
            return np.zeros(len(nodes), dtype=np.int64)
        names, requests, weights = columns_of(weighed)
        resources = nodes.cluster.resources
        allocatable = nodes.pick(resources.table(names, offered=True))
        requested = nodes.pick(resources.table(names, nonzero=True)) + requests
        if scalar and self._totals.names(scalar):
            allocatable, requested = allocatable.copy(), requested - requests
            self._totals.fill_in(nodes, names, allocatable, requested)
            requested += requests
        if strategy.counts_zero and allocatable.all():
            scores = strategy.scores(requested, allocatable)
            totals = (scores if (weights == 1).all() else scores * weights).sum(axis=0)
            return strategy.averages(totals, int(weights.sum()))
        counts = allocatable != 0
        scores = strategy.scores(requested, np.where(counts, allocatable, 1))
        if not strategy.counts_zero:
            counts &= scores > 0
        totals = (np.where(counts, scores, 0) * weights).sum(axis=0)
        # Where nothing counts the total is 0, and so is the score.
        return strategy.averages(totals, np.maximum((counts * weights).sum(axis=0), 1))

    def score_node(self, cycle: Cycle, node: NodeInfo) -> int:
        strategy = self._strategy
        total = weights = 0
        _wants, weighed, scalar = self._notes(cycle)
        if scalar and self._totals.names(scalar):
            return int(self.score(cycle, Nodes(cycle.cluster, np.array([node.row])))[0])
        for allocatable, used, request, weight in usage_on(cycle.cluster, node.row, weighed, nonzero=True):
            requested = used + request
            if allocatable > EXACT or requested > EXACT:
                return int(self.score(cycle, Nodes(cycle.cluster, np.array([node.row])))[0])
            score = strategy.score(requested, allocatable)
            if score or strategy.counts_zero:
                total += score * weight
                weights += weight
        return strategy.average(total, weights) if weights else 0

    def score_placements(self, _key: str, tried: Sequence[TriedPlacement]) -> list[int]:
        return [placement_score(self.handle.cluster, self._resources, each) for each in tried]

    def _notes(self, cycle: Cycle) -> tuple[Wants, tuple[Weighed, ...], Sequence[str]]:
        """What the pod asks for, the resources that count for its score, and which of these devices may stand for:
        worked out once per specification."""
        known: tuple[Wants, tuple[Weighed, ...], Sequence[str]] | None = cycle.facts.notes.get(self)
        if known is None:
            wants = Wants.of(cycle.pod, self._ignored, self._ignored_groups)
            weighed = weigh(self._resources, score_requests(cycle.pod))
            known = cycle.facts.notes[self] = wants, weighed, device_resources(weighed)
        return known


def _wants(cycle: Cycle) -> tuple[Wants, Set[str]]:
    """What the pod asks for, and those of the resources that classes stand behind."""
    wants: tuple[Wants, Set[str]] | None = cycle.data.get(PRE_FILTER)
    if wants is None:
        raise PluginError(f'error reading "{PRE_FILTER}" from cycleState: not found')
    return wants


def _strategy(config: ScoringStrategy) -> ResourceStrategy:
    if config.type == LEAST_ALLOCATED:
        return LeastAllocated()
    if config.type == MOST_ALLOCATED:
        return MostAllocated()
    assert config.requested_to_capacity_ratio is not None, "the configuration was checked"
    return RequestedToCapacityRatio(Shape(config.requested_to_capacity_ratio.shape))


def placement_score(cluster: Cluster, resources: Sequence[ResourceSpec], tried: TriedPlacement) -> int:
    requests = [score_requests(pod) for pod in tried.pods]
    rows, columns = tried.placement.rows, cluster.resources
    total = weights = 0
    for spec in resources:
        requested = sum(each.get(spec.name, 0) for each in requests)
        if not requested and is_scalar_resource_name(spec.name):
            continue
        offered = columns.table((spec.name,), offered=True)[0][rows]
        in_use = columns.table((spec.name,), nonzero=True)[0][rows]
        allocatable = int(offered.sum())
        if not allocatable:
            continue
        requested += int(in_use[offered != 0].sum())
        total += min(requested, allocatable) * MAX_SCORE // allocatable * spec.weight
        weights += spec.weight
    return total // weights if weights else 0


def frees_resources(pod: Pod, before: Pod, after: Pod | None) -> bool:
    """Whether a pod's departure or its smaller requests may make room."""
    if after is None:
        return bool(before.node_name or before.status.nominated_node_name)
    if after.uid == pod.uid:
        return True
    if not after.node_name:
        return False
    was, is_now = requested(before), requested(after)
    wanted = (name for name, amount in requested(pod).items() if amount)
    return any(max(was.get(name, 0), 0) > max(is_now.get(name, 0), 0) for name in wanted)


def offers_more(resources: DeviceResourceNames) -> Callable[[Pod, Node | None, Node], bool]:
    def may_help(pod: Pod, before: Node | None, after: Node) -> bool:
        """Whether a new or changed node may have room."""
        wanted = {name: amount for name, amount in fit_requests(pod).items() if amount}
        offers = offered(after.status.allocatable)
        devices = [name for name in wanted if resources.class_of(name) is not None and offers.get(name, 0) <= 0]
        short = (amount > offers.get(name, 0) for name, amount in wanted.items() if name not in devices)
        if offers.get(PODS, 0) < 1 or any(short):
            return False
        if before is None or devices:
            return True
        offered_before = offered(before.status.allocatable)
        return any(offers.get(name, 0) > offered_before.get(name, 0) for name in (PODS, *wanted))

    return may_help


def names_resource(pod: Pod, before: DeviceClass | None, after: DeviceClass) -> bool:
    """Whether a device class now stands behind a resource of the pod."""
    name = after.spec.extended_resource_name or ""
    if before is not None and (before.spec.extended_resource_name or "") == name:
        return False
    requests = pod_requests(pod)
    return name in requests or (before is None and DEVICE_CLASS_PREFIX + after.name in requests)
