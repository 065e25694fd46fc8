"""Scores whether the pod evens out what the node uses of its resources (NodeResourcesBalancedAllocation).

A node whose cpu is full while its memory is empty wastes the memory. With the share in use of each resource (at most 1)
and their spread

    g = 100·(1 − std), toward zero;   std = |f₀ − f₁|/2 for two resources, the standard deviation for more

the score is 50 + (50 + g(with the pod) − g(without it))/2: 75 where nothing changes. It is about real requests: a pod
that asks for none of the resources is not scored. Where a device class stands behind a resource, the devices of nodes
that offer none of it count instead. In 1.35 the score is g(with the pod).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster, Mask, NodeInfo, Nodes, RowCursor
from podium.cluster.resources import Amounts
from podium.config.field import FieldError, FieldPath
from podium.framework import MAX_SCORE, SKIP, Cycle, DependsOn, Handle, NodePart, Plugin, Scores, Status
from podium.kube import Pod
from podium.kube.requests import balanced_requests
from podium.placement.devices.totals import DeviceTotals
from podium.placement.devices.uses import uses_in
from podium.placement.resource_usage import (
    DEFAULT_RESOURCES,
    ResourceSpec,
    Weighed,
    columns_of,
    device_resources,
    usage_on,
    weigh,
)

NAME = "NodeResourcesBalancedAllocation"

FEW_ROWS = 8
"""Up to so many changes, nodes are looked at one by one."""

Floats = NDArray[np.float64]


class NodeResourcesBalancedAllocationArgs(
    msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True
):
    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES

    def __post_init__(self) -> None:
        if not self.resources:
            msgspec.structs.force_setattr(self, "resources", DEFAULT_RESOURCES)

    def validate(self, path: FieldPath) -> Iterator[FieldError]:
        seen: set[str] = set()
        for i, resource in enumerate(self.resources):
            at = path.child("resources").index(i)
            if resource.name in seen:
                yield FieldError.duplicate(at.child("name"), resource.name)
            seen.add(resource.name)
            if resource.weight != 1:
                yield FieldError.invalid(at.child("weight"), resource.weight, "must be 1")


class NodeResourcesBalancedAllocation(Plugin):
    name = NAME
    trusted = True
    Args = NodeResourcesBalancedAllocationArgs
    depends_on = DependsOn(node=NodePart.TOTALS, claims=False)

    def __init__(self, args: NodeResourcesBalancedAllocationArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._standing = Standing()
        uses = uses_in(handle)
        self._devices = uses.resources
        self._totals = DeviceTotals(uses)

    def answer_key(self, pod: Pod) -> Hashable:
        """Devices are not rows; where no class stands behind a resource, rows are all that matters until one does."""
        names = device_resources(
            weigh(self.args.resources, balanced_requests(pod, by_sums=self.handle.rules.resize_by_sums))
        )
        if not names:
            return ()
        return None if self._totals.names(names) else self._devices.version

    def pre_score(self, cycle: Cycle, _nodes: Nodes) -> Status | None:
        return None if self._weighed(cycle)[0] else SKIP

    def score(self, cycle: Cycle, nodes: Nodes) -> Scores:
        weighed, scalar = self._weighed(cycle)
        if not weighed:
            return np.zeros(len(nodes), dtype=np.int64)
        names, requests, _weights = columns_of(weighed)
        resources = nodes.cluster.resources
        used, allocatable = nodes.pick(resources.table(names)), nodes.pick(resources.table(names, offered=True))
        compares = self.handle.rules.balance_without_the_pod
        if scalar and self._totals.names(scalar):
            used, allocatable = used.copy(), allocatable.copy()
            self._totals.fill_in(nodes, names, allocatable, used)
            without = _balances(used, allocatable) if compares else None
        else:
            without = nodes.pick(self._standing.balances(nodes.cluster, names)) if compares else None
        beside = _balances(used + requests, allocatable)
        if without is None:
            return beside
        half = beside - without + MAX_SCORE // 2
        scores: Scores = MAX_SCORE // 2 + half // 2  # never negative: shares between 0 and 1 spread by at most 1/2
        return scores

    def score_node(self, cycle: Cycle, node: NodeInfo) -> int:
        weighed, scalar = self._weighed(cycle)
        if not weighed:
            return 0
        if scalar and self._totals.names(scalar):
            return int(self.score(cycle, Nodes(cycle.cluster, np.array([node.row])))[0])
        without, beside = [], []
        for allocatable, used, request, _weight in usage_on(cycle.cluster, node.row, weighed, nonzero=False):
            whole = float(allocatable)
            without.append(float(used) / whole)
            beside.append(float(used + request) / whole)
        if not self.handle.rules.balance_without_the_pod:
            return _balance(beside)
        return MAX_SCORE // 2 + (MAX_SCORE // 2 + _balance(beside) - _balance(without)) // 2

    def _weighed(self, cycle: Cycle) -> tuple[tuple[Weighed, ...], Sequence[str]]:
        """The resources that count for the pod, none if it asks for none, and which of these devices may stand for;
        PreScore may be disabled, so nothing relies on it."""
        notes = cycle.facts.notes
        known: tuple[tuple[Weighed, ...], Sequence[str]] | None = notes.get(self)
        if known is None:
            weighed = weigh(self.args.resources, balanced_requests(cycle.pod, by_sums=self.handle.rules.resize_by_sums))
            weighed = weighed if any(each.request for each in weighed) else ()
            known = notes[self] = weighed, device_resources(weighed)
        return known


class Standing:
    """g of every node as it stands. It is the same for all pods, so it is kept; changed rows are computed again."""

    def __init__(self) -> None:
        self._of: tuple[Cluster | None, tuple[str, ...]] = None, ()
        self._cursor: RowCursor
        self._balances: Scores = np.zeros(0, dtype=np.int64)

    def balances(self, cluster: Cluster, names: tuple[str, ...]) -> Scores:
        """Of all rows, by the resources with these names; to be read, not written to."""
        resources, known = cluster.resources, len(self._balances) == cluster.columns.rows
        if self._of != (cluster, names):
            self._of, self._cursor = (cluster, names), cluster.row_cursor()
        changed = self._cursor.read()
        if not known or changed is None or len(changed[0]) + len(changed[1]) > FEW_ROWS:
            self._balances = _balances(resources.table(names), resources.table(names, offered=True))
            return self._balances
        weighed = [Weighed(name, 0, 1) for name in names]
        for row in {*changed[0], *changed[1]}:
            usage = usage_on(cluster, row, weighed, nonzero=False)
            self._balances[row] = _balance([float(used) / float(allocatable) for allocatable, used, _, _ in usage])
        return self._balances


def _balances(used: Amounts, allocatable: Amounts) -> Scores:
    """g per node, from what is used and offered of each resource."""
    offered = allocatable != 0
    everywhere = bool(offered.all())
    # Of a resource that a node does not have there is so much that nothing is a share of it.
    shares = used / (allocatable if everywhere else np.where(offered, allocatable, np.inf))
    np.minimum(shares, 1.0, out=shares)
    if len(shares) == 2:
        spread = np.abs((shares[0] - shares[1]) / 2)
        if not everywhere:
            spread *= offered.all(axis=0)  # one share alone does not spread
    else:
        spread = _spread(offered, shares)
    balances: Scores = ((1 - spread) * float(MAX_SCORE)).astype(np.int64)
    return balances


def _spread(offered: Mask, shares: Floats) -> Floats:
    """The spread where nodes may have any number of the resources. Sums run in the configured order, as floats must."""
    counts = np.sum(offered, axis=0)
    mean = sum(shares) / np.maximum(counts, 1)
    squares = np.zeros_like(mean)
    for share, here in zip(shares, offered, strict=True):
        squares += np.where(here, (share - mean) * (share - mean), 0.0)
    deviation = np.sqrt(squares / np.maximum(counts, 1))
    highest = np.max(np.where(offered, shares, -1.0), axis=0)
    lowest = np.min(np.where(offered, shares, 2.0), axis=0)
    spread: Floats = np.where(counts > 2, deviation, np.where(counts == 2, (highest - lowest) / 2, 0.0))
    return spread


def _balance(shares: list[float]) -> int:
    """g of one node, from its shares in use."""
    spread = 0.0
    if len(shares) == 2:
        one, other = shares
        spread = abs(((one if one < 1.0 else 1.0) - (other if other < 1.0 else 1.0)) / 2)
    elif len(shares) > 2:
        shares = [min(share, 1.0) for share in shares]
        total = squares = 0.0
        for share in shares:  # one by one: sum() may add floats more exactly than kube-scheduler does
            total += share
        mean = total / len(shares)
        for share in shares:
            squares += (share - mean) * (share - mean)
        spread = math.sqrt(squares / len(shares))
    return int((1 - spread) * float(MAX_SCORE))
