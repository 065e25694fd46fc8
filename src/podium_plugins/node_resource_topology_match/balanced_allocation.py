"""Scores zones by how evenly a request uses their resources: (1 − variance of request / available) · 100.

The variance is that of a sample (n − 1). A zone that has nothing of a resource counts as fully used; one that has less
than is asked for scores 0. With one resource there is nothing to balance: 100. Weights do not count.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from podium_plugins.node_resource_topology_match.strategy import PerZone, RowResource, lowest_of
from podium_plugins.node_resource_topology_match.zone_columns import Amounts


def balanced_allocation() -> PerZone:
    return PerZone({}, score_zones, score_row)


def score_zones(available: Sequence[Amounts], requests: Sequence[int], _weights: Sequence[int]) -> Amounts:
    shares = [
        np.where(have == 0, 1.0, request / np.maximum(have, 1))
        for have, request in zip(available, requests, strict=True)
    ]
    mean, squares = np.zeros_like(shares[0]), np.zeros_like(shares[0])
    over = np.zeros(shares[0].shape, dtype=np.bool_)
    for share in shares:
        mean += share
        over |= share > 1
    mean /= len(shares)
    for share in shares:
        squares += (share - mean) * (share - mean)
    score = ((1 - squares / max(1, len(shares) - 1)) * 100).clip(min=0)
    found: Amounts = np.where(over, 0, score).astype(np.int64)
    return found


def score_row(resources: Sequence[RowResource]) -> int:
    """A zone with 6 cpus and 16 GiB, of which 2 and 8 are asked for.

    >>> score_row([([6000], 0, 2000, 1), ([16 << 30], 0, 8 << 30, 1)])
    98
    """
    scores: list[int] = []
    for slot in range(len(resources[0][0])):
        shares: list[float] = []
        for reported, held, amount, _weight in resources:
            left = reported[slot] - held
            shares.append(amount / left if left > 0 else 1.0)
        scores.append(_score(shares))
    return lowest_of(scores, 1)


def _score(shares: list[float]) -> int:
    if max(shares) > 1:
        return 0
    if len(shares) == 2:  # the usual number: the same sums without a loop
        mean = (shares[0] + shares[1]) / 2
        one, other = shares[0] - mean, shares[1] - mean
        return int(max(0.0, (1 - (one * one + other * other)) * 100))
    mean = 0.0
    for share in shares:
        mean += share
    mean /= len(shares)
    squares = 0.0
    for share in shares:
        squares += (share - mean) * (share - mean)
    return int(max(0.0, (1 - squares / max(1, len(shares) - 1)) * 100))
