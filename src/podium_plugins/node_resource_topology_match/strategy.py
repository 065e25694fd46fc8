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

from podium import MAX_SCORE, Scores
from podium.cluster import Rows
from podium_plugins.node_resource_topology_match.topology_object import ManagerSettings
from podium_plugins.node_resource_topology_match.zone_columns import Amounts, ZoneColumns
from podium_plugins.node_resource_topology_match.zone_needs import Request, ZoneNeeds

Weights = Mapping[str, int]
ScoreZones = Callable[[Sequence[Amounts], Sequence[int], Sequence[int]], Amounts]
"""(available[slots, rows] of each resource, its amount requested, its weight) → int64[slots, rows]"""
RowResource = tuple[list[int], int, int, int]
"""A resource on one row: what its zones were reported to have, how much of that pods hold, the amount requested, and
its weight."""
ScoreRow = Callable[[Sequence[RowResource]], int]
"""The lowest score of a zone of one row that is not 0; 0 where there is none."""


class ZoneStrategy(Protocol):
    """A way to score nodes by their zones, for a Guaranteed pod."""

    def scores(self, zones: ZoneColumns, needs: ZoneNeeds, settings: ManagerSettings, rows: Rows) -> Scores:
        """int64 for each of the rows, which all have these settings."""

    def score(self, zones: ZoneColumns, needs: ZoneNeeds, settings: ManagerSettings, row: int) -> int: ...


class PerZone:
    """A strategy that scores each zone on its own."""

    def __init__(self, weights: Weights, score_zones: ScoreZones, score_row: ScoreRow) -> None:
        self._weights = weights
        self._score_zones = score_zones
        self._score_row = score_row

    def scores(self, zones: ZoneColumns, needs: ZoneNeeds, settings: ManagerSettings, rows: Rows) -> Scores:
        if not settings.aligns:
            return np.zeros(len(rows), dtype=np.int64)
        requests = requests_of(needs, settings)
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
        requests = requests_of(needs, settings)
        if not requests:
            return MAX_SCORE
        total, weights = 0, self._weights
        for request in requests:
            total += self._score_row(
                [
                    (zones.reported_on(name, row), zones.held_on(name, row), amount, weights.get(name, 1))
                    for name, amount, _counts, _optional, _offered in request
                ]
            )
        return total // len(requests)

    def _weighed(self, request: Request) -> tuple[list[int], list[int]]:
        weights = self._weights
        return [each.amount for each in request], [weights.get(each.resource, 1) for each in request]


def lowest_of(sums: list[int], weights: int) -> int:
    """The lowest of some weighted sums, as a score, of those that are not 0 then."""
    lowest = min(sums, default=0)
    if lowest < weights:
        lowest = min((each for each in sums if each >= weights), default=0)
    return lowest // weights


def requests_of(needs: ZoneNeeds, settings: ManagerSettings) -> tuple[Request, ...]:
    """What is scored on nodes with these settings."""
    return needs.pod_requests if settings.by_pod else needs.container_requests
