"""Scores zones by how much of them would be left free: (available − request) · 100 / available, weighted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from podium_plugins.node_resource_topology_match.strategy import PerZone, RowResource, Weights, lowest_of
from podium_plugins.node_resource_topology_match.zone_columns import Amounts


def least_allocated(weights: Weights) -> PerZone:
    return PerZone(weights, score_zones, score_row)


def score_zones(available: Sequence[Amounts], requests: Sequence[int], weights: Sequence[int]) -> Amounts:
    total = np.zeros_like(available[0])
    for have, request, weight in zip(available, requests, weights, strict=True):
        total += np.where(have >= request, (have - request) * 100 // np.maximum(have, 1), 0) * weight
    return total // sum(weights)


def score_row(resources: Sequence[RowResource]) -> int:
    """A zone with 6 cpus and 16 GiB, of which 2 and 8 are asked for.

    >>> score_row([([6000], 0, 2000, 1), ([16 << 30], 0, 8 << 30, 1)])
    58
    """
    sums, together = [0] * len(resources[0][0]), 0
    for reported, held, amount, weight in resources:
        most, slot = held + amount, 0
        least = most if amount else most + 1  # a zone that has nothing scores 0
        together += weight
        for have in reported:
            if have >= least:
                sums[slot] += (have - most) * 100 // (have - held) * weight
            slot += 1  # noqa: SIM113 (enumerate takes longer)
    return lowest_of(sums, together)
