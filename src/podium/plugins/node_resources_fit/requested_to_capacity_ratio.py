"""Scores utilization by a shape that the user draws (RequestedToCapacityRatio).

    utilization(r) = 100·requested/allocatable, toward zero; 100 when more is requested than there is
    score(r)       = shape(utilization(r))
    score          = Σ weight·score(r) / Σ weight, rounded to the nearest, halves up

A resource that scores 0 is left out of both sums: it does not pull the average down.
"""

from __future__ import annotations

import numpy as np

from podium.cluster.resources import Amounts
from podium.framework import Scores
from podium.placement.shape import MAX_UTILIZATION, Shape
from podium.plugins.node_resources_fit.strategy import percentages


class RequestedToCapacityRatio:
    counts_zero = False

    def __init__(self, shape: Shape) -> None:
        self._shape = shape

    def scores(self, requested: Amounts, allocatable: Amounts) -> Scores:
        utilization = percentages(requested, allocatable)
        return self._shape.at_each(np.where(requested > allocatable, MAX_UTILIZATION, utilization))

    def score(self, requested: int, allocatable: int) -> int:
        over = requested > allocatable
        return self._shape.at(MAX_UTILIZATION if over else requested * MAX_UTILIZATION // allocatable)

    def averages(self, totals: Scores, weights: Scores | int) -> Scores:
        return (2 * totals + weights) // (2 * weights)

    def average(self, total: int, weight: int) -> int:
        return (2 * total + weight) // (2 * weight)
