"""Scores the fuller node higher (MostAllocated). Packs pods onto few nodes.

    score(r) = 100·min(requested, allocatable)/allocatable
    score    = Σ weight·score(r) / Σ weight

both divisions toward zero. Requested can exceed allocatable because pods without requests count a default here.
"""

from __future__ import annotations

import numpy as np

from podium.cluster.resources import Amounts
from podium.framework import MAX_SCORE, Scores
from podium.plugins.node_resources_fit.strategy import percentages


class MostAllocated:
    counts_zero = True

    def scores(self, requested: Amounts, allocatable: Amounts) -> Scores:
        return percentages(np.minimum(requested, allocatable), allocatable)

    def score(self, requested: int, allocatable: int) -> int:
        return min(requested, allocatable) * MAX_SCORE // allocatable

    def averages(self, totals: Scores, weights: Scores | int) -> Scores:
        return totals // weights

    def average(self, total: int, weight: int) -> int:
        return total // weight
