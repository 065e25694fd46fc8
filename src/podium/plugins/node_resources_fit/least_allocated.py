"""Scores the emptier node higher (LeastAllocated). Spreads pods over nodes.

    score(r) = 100·(allocatable − requested)/allocatable, 0 when more is requested than there is
    score    = Σ weight·score(r) / Σ weight

both divisions toward zero.
"""

from __future__ import annotations

import numpy as np

from podium.cluster.resources import Amounts
from podium.framework import MAX_SCORE, Scores
from podium.plugins.node_resources_fit.strategy import percentages


class LeastAllocated:
    counts_zero = True

    def scores(self, requested: Amounts, allocatable: Amounts) -> Scores:
        free = allocatable - requested
        if requested.size and requested.min() < 0:  # past 64 bits: the sign of what is free does not tell either
            return percentages(np.where(requested > allocatable, 0, free), allocatable)
        return percentages(np.maximum(free, 0, out=free), allocatable)

    def score(self, requested: int, allocatable: int) -> int:
        return 0 if requested > allocatable else (allocatable - requested) * MAX_SCORE // allocatable

    def averages(self, totals: Scores, weights: Scores | int) -> Scores:
        return totals // weights

    def average(self, total: int, weight: int) -> int:
        return total // weight
