"""Scores zones by how much of them would be left free: (available − request) · 100 / available, weighted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from podium.plugins.node_resource_topology_match.strategy import PerZone, Weights
from podium.plugins.node_resource_topology_match.zone_columns import Amounts


def least_allocated(weights: Weights) -> PerZone:
    return PerZone(weights, score_zones, score_zone)


def score_zones(available: Sequence[Amounts], requests: Sequence[int], weights: Sequence[int]) -> Amounts:
    total = np.zeros_like(available[0])
    for have, request, weight in zip(available, requests, weights, strict=True):
        total += np.where(have >= request, (have - request) * 100 // np.maximum(have, 1), 0) * weight
    return total // sum(weights)


def score_zone(available: Sequence[int], requests: Sequence[int], weights: Sequence[int]) -> int:
    """A zone with 6 cpus and 16 GiB, of which 2 and 8 are asked for.

    >>> score_zone([6000, 16 << 30], [2000, 8 << 30], [1, 1])
    58
    """
    total = 0
    for have, request, weight in zip(available, requests, weights, strict=True):
        if have >= request:
            total += (have - request) * 100 // have * weight
    return total // sum(weights)
