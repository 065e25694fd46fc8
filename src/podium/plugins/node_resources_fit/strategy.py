"""Defines what a scoring strategy is: a score per resource, and a way to bring the resources' scores together.

Each strategy has the same arithmetic twice, over columns and in plain integers, and both must give the same.
`requested` is what the node would use with the pod on it; `allocatable` is never 0 here.
"""

from __future__ import annotations

from typing import Protocol

from podium.cluster.resources import Amounts
from podium.framework import MAX_SCORE, Scores, truncated_divide

EXACT = 2**56
"""Up to this amount a hundredfold stays within 64 bits; beyond, only the column form wraps as kube-scheduler does."""


class ResourceStrategy(Protocol):
    """How good a share in use is, by resource and together."""

    counts_zero: bool
    """Whether a resource that scores 0 takes part with its weight, or is left out."""

    def scores(self, requested: Amounts, allocatable: Amounts) -> Scores: ...

    def score(self, requested: int, allocatable: int) -> int: ...

    def averages(self, totals: Scores, weights: Scores | int) -> Scores: ...

    def average(self, total: int, weight: int) -> int: ...


def percentages(parts: Amounts, wholes: Amounts) -> Scores:
    """100·part/whole in 64 bits, toward zero."""
    hundredfold = parts * MAX_SCORE
    if hundredfold.size and hundredfold.min() < 0:  # past 64 bits
        return truncated_divide(hundredfold, wholes)
    return hundredfold // wholes
