"""Defines what a scoring strategy is, and how scores of zones become the score of a node.

LeastAllocated, MostAllocated and BalancedAllocation score each zone for a request, from 0 to 100. A node's score is the
lowest of its zones' scores that is not 0; in container scope the mean over the containers, each against the same
amounts. They count on nodes whose kubelet aligns to a single NUMA node; on all others they say 0. LeastNUMANodes scores
the node as a whole, whatever its policy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np

from podium.cluster import Rows
from podium.framework.normalize import MAX_SCORE, Scores
from podium.plugins.node_resource_topology_match.manager_settings import ManagerSettings
from podium.plugins.node_resource_topology_match.zone_columns import Amounts, ZoneColumns
from podium.plugins.node_resource_topology_match.zone_needs import Request, ZoneNeeds

Weights = Mapping[str, int]
ScoreZones = Callable[[Sequence[Amounts], Sequence[int], Sequence[int]], Amounts]
"""(available[slots, rows] of each resource, its amount requested, its weight) → int64[slots, rows]"""
ScoreZone = Callable[[Sequence[int], Sequence[int], Sequence[int]], int]
"""(available of each resource, its amount requested, its weight) → 0–100"""


class ZoneStrategy(Protocol):
    """A way to score nodes by their zones, for a Guaranteed pod."""

    def scores(self, zones: ZoneColumns, needs: ZoneNeeds, settings: ManagerSettings, rows: Rows) -> Scores:
        """int64 for each of the rows, which all have these settings."""

    def score(self, zones: ZoneColumns, needs: ZoneNeeds, settings: ManagerSettings, row: int) -> int: ...


class PerZone:
    """A strategy that scores each zone on its own."""

    def __init__(self, weights: Weights, score_zones: ScoreZones, score_zone: ScoreZone) -> None:
        self._weights = weights
        self._score_zones = score_zones
        self._score_zone = score_zone

    def scores(self, zones: ZoneColumns, needs: ZoneNeeds, settings: ManagerSettings, rows: Rows) -> Scores:
        if not settings.aligns:
            return np.zeros(len(rows), dtype=np.int64)
        requests = _requests(needs, settings)
        if not requests:
            return np.full(len(rows), MAX_SCORE, dtype=np.int64)
        exists = zones.exists(rows)
        available = {name: zones.available(name, rows).clip(min=0) for name in needs.resources}
        total = np.zeros(len(rows), dtype=np.int64)
        for request in requests:
            found = self._score_zones([available[each.resource] for each in request], *self._weighed(request))
            lowest = np.where(exists & (found > 0), found, MAX_SCORE + 1).min(axis=0, initial=MAX_SCORE + 1)
            total += np.where(lowest <= MAX_SCORE, lowest, 0)
        return total // len(requests)

    def score(self, zones: ZoneColumns, needs: ZoneNeeds, settings: ManagerSettings, row: int) -> int:
        if not settings.aligns:
            return 0
        requests = _requests(needs, settings)
        if not requests:
            return MAX_SCORE
        score_zone, total = self._score_zone, 0
        for request in requests:
            amounts, weights = self._weighed(request)
            zones_of = zip(*(zones.available_on(each.resource, row) for each in request), strict=True)
            found = [score_zone(available, amounts, weights) for available in zones_of]
            total += min((score for score in found if score), default=0)
        return total // len(requests)

    def _weighed(self, request: Request) -> tuple[list[int], list[int]]:
        weights = self._weights
        return [each.amount for each in request], [weights.get(each.resource, 1) for each in request]


def _requests(needs: ZoneNeeds, settings: ManagerSettings) -> list[Request]:
    found = [needs.whole] if settings.by_pod else [each.request for each in needs.containers]
    return [request for request in found if request]
