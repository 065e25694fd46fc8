"""Filters and scores nodes by resources (NodeResourcesFit).

The pod's requests are read three ways. The filter takes what is written on pod and containers; the score takes the
containers only, with 100m and 200 MiB for a container that asks for nothing, and compares with nodes counted the same
way. Where a device class stands behind a resource, the devices of nodes that offer none of it count instead: the filter
leaves them to DynamicResources, the score counts them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence, Set

import numpy as np

from podium.cluster import NodeInfo, Nodes
from podium.framework import (
    Action,
    Cycle,
    Handle,
    Interest,
    Plugin,
    PluginError,
    Resource,
    Scope,
    Scores,
    Status,
    Verdict,
)
from podium.framework.placements import TriedPlacement
from podium.kube import Pod
from podium.kube.extended_resources import wanted_device_resources
from podium.kube.requests import score_requests
from podium.placement.devices.totals import DeviceTotals
from podium.placement.devices.uses import uses_of
from podium.placement.pod_signatures import requests_signature
from podium.placement.resource_usage import Weighed, columns_of, device_resources, usage_on, weigh
from podium.placement.shape import Shape
from podium.plugins.node_resources_fit.args import (
    LEAST_ALLOCATED,
    MOST_ALLOCATED,
    NodeResourcesFitArgs,
    ScoringStrategy,
)
from podium.plugins.node_resources_fit.hints import frees_resources, names_resource, offers_more
from podium.plugins.node_resources_fit.insufficient_resources import NO_NAMES, Wants
from podium.plugins.node_resources_fit.least_allocated import LeastAllocated
from podium.plugins.node_resources_fit.most_allocated import MostAllocated
from podium.plugins.node_resources_fit.placement_score import placement_score
from podium.plugins.node_resources_fit.requested_to_capacity_ratio import RequestedToCapacityRatio
from podium.plugins.node_resources_fit.strategy import EXACT, ResourceStrategy

NAME = "NodeResourcesFit"
PRE_FILTER = f"PreFilter{NAME}"


class NodeResourcesFit(Plugin):
    name = NAME
    trusted = True
    Args = NodeResourcesFitArgs
    filter_scope = Scope.TOTALS
    score_scope = Scope.TOTALS
    sees_claims = False

    def __init__(self, args: NodeResourcesFitArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._ignored = frozenset(args.ignored_resources or ())
        self._ignored_groups = frozenset(args.ignored_resource_groups or ())
        self._resources = args.scoring_strategy.resources
        self._strategy = _strategy(args.scoring_strategy)
        uses = uses_of(handle.cluster.objects)
        self._devices = uses.resources
        self._totals = DeviceTotals(uses)

    def watermark(self, pod: Pod) -> Hashable:
        """Which resources classes stand behind; and devices are not rows, where they are scored."""
        names = wanted_device_resources(pod)
        if not names:
            return ()
        scored = {each.name for each in self._resources}
        return None if self._totals.names([name for name in names if name in scored]) else self._devices.version

    def sign_pod(self, pod: Pod) -> Hashable:
        return requests_signature(pod, self._devices)

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
        strategy, (_wants, weighed, scarce) = self._strategy, self._notes(cycle)
        if not weighed:
            return np.zeros(len(nodes), dtype=np.int64)
        names, requests, weights = columns_of(weighed)
        resources = nodes.cluster.resources
        allocatable = nodes.pick(resources.table(names, offered=True))
        requested = nodes.pick(resources.table(names, nonzero=True)) + requests
        if scarce and self._totals.names(scarce):
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
        _wants, weighed, scarce = self._notes(cycle)
        if scarce and self._totals.names(scarce):
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
