"""NodeResourcesBalancedAllocation: does the pod even out what the node uses of its resources, or skew it?

A node whose cpu is full while its memory is empty wastes the memory. With the share in use of each resource (at most 1)
and their spread

    g = 100·(1 − std), toward zero;   std = |f₀ − f₁|/2 for two resources, the standard deviation for more

the score is 50 + (50 + g(with the pod) − g(without it))/2: 75 where nothing changes. It is about real requests: a pod
that asks for none of the resources is not scored.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from podium.cluster import Mask, NodeInfo, Nodes
from podium.cluster.resources import Amounts
from podium.config.field import FieldError, FieldPath
from podium.framework import MAX_SCORE, SKIP, Cycle, Plugin, Scope, Scores, Status
from podium.framework.usage import DEFAULT_RESOURCES, ResourceSpec, Weighed, usage_on, weigh
from podium.kube.requests import balanced_requests

NAME = "NodeResourcesBalancedAllocation"


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
    Args = NodeResourcesBalancedAllocationArgs
    score_scope = Scope.TOTALS

    def pre_score(self, cycle: Cycle, _nodes: Nodes) -> Status | None:
        return None if _asks_for_any(self._weighed(cycle)) else SKIP

    def score(self, cycle: Cycle, nodes: Nodes) -> Scores:
        weighed = self._weighed(cycle)
        if not _asks_for_any(weighed):
            return np.zeros(len(nodes), dtype=np.int64)
        allocatable = [nodes.allocatable(resource) for resource, _, _ in weighed]
        used = [nodes.requested(resource) for resource, _, _ in weighed]
        requested = [amount + each.request for amount, each in zip(used, weighed, strict=True)]
        difference = _balances(requested, allocatable) - _balances(used, allocatable)
        half = MAX_SCORE // 2 + difference
        return MAX_SCORE // 2 + (half + (half < 0)) // 2  # toward zero

    def score_node(self, cycle: Cycle, node: NodeInfo) -> int:
        weighed = self._weighed(cycle)
        if not _asks_for_any(weighed):
            return 0
        usage = usage_on(cycle.cluster, node.row, weighed, nonzero=False)
        without = _balance([float(used) / float(allocatable) for allocatable, used, _, _ in usage])
        beside = _balance([float(used + request) / float(allocatable) for allocatable, used, request, _ in usage])
        return MAX_SCORE // 2 + int((MAX_SCORE // 2 + beside - without) / 2)

    def _weighed(self, cycle: Cycle) -> tuple[Weighed, ...]:
        """The resources that count for the pod; PreScore may be disabled, so nothing relies on it."""
        notes = cycle.facts.notes
        weighed: tuple[Weighed, ...] | None = notes.get(self)
        if weighed is None:
            weighed = notes[self] = weigh(self.args.resources, balanced_requests(cycle.pod))
        return weighed


def _asks_for_any(weighed: tuple[Weighed, ...]) -> bool:
    return any(request for _, request, _ in weighed)


def _balances(amounts: Sequence[Amounts], allocatable: Sequence[Amounts]) -> Scores:
    """g per node, from the amounts in use and what there is of each resource."""
    offered: list[Mask] = [each != 0 for each in allocatable]
    shares = [_shares(*each) for each in zip(amounts, allocatable, offered, strict=True)]
    if len(shares) == 2:
        spread = np.where(offered[0] & offered[1], np.abs((shares[0] - shares[1]) / 2), 0.0)
    else:
        spread = _spread_of_many(shares, offered)
    return ((1 - spread) * float(MAX_SCORE)).astype(np.int64)


def _shares(amounts: Amounts, allocatable: Amounts, offered: Mask) -> NDArray[np.float64]:
    """The share in use, at most 1; 0 where there is nothing of the resource."""
    shares = amounts.astype(np.float64) / np.where(offered, allocatable, 1).astype(np.float64)
    return np.where(offered, np.minimum(shares, 1.0), 0.0)


def _spread_of_many(shares: list[NDArray[np.float64]], offered: list[Mask]) -> NDArray[np.float64]:
    """The spread where nodes may have any number of the resources: sums run in the configured order, as floats must."""
    counts = sum(each.astype(np.int64) for each in offered)
    total = sum(shares)
    mean = total / np.maximum(counts, 1)
    squares = np.zeros_like(mean)
    for share, here in zip(shares, offered, strict=True):
        squares += np.where(here, (share - mean) * (share - mean), 0.0)
    deviation = np.sqrt(squares / np.maximum(counts, 1))
    highest = np.max([np.where(here, share, -1.0) for share, here in zip(shares, offered, strict=True)], axis=0)
    lowest = np.min([np.where(here, share, 2.0) for share, here in zip(shares, offered, strict=True)], axis=0)
    return np.where(counts > 2, deviation, np.where(counts == 2, (highest - lowest) / 2, 0.0))


def _balance(shares: list[float]) -> int:
    """g of one node, from its shares in use."""
    shares = [min(share, 1.0) for share in shares]
    spread = 0.0
    if len(shares) == 2:
        spread = abs((shares[0] - shares[1]) / 2)
    elif len(shares) > 2:
        total = squares = 0.0
        for share in shares:  # one by one: sum() may add floats more exactly than kube-scheduler does
            total += share
        mean = total / len(shares)
        for share in shares:
            squares += (share - mean) * (share - mean)
        spread = math.sqrt(squares / len(shares))
    return int((1 - spread) * float(MAX_SCORE))
