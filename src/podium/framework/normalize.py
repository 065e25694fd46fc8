"""Brings raw scores into 0–100, the way kube-scheduler rounds.

All arithmetic is on integers with division toward zero; scores here are never negative, so floor division is the same.
A plugin names one of the usual ways (`normalizer = Normalizer.DEFAULT`) or writes its own `normalize`.
"""

from __future__ import annotations

import enum
from typing import overload

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.int64]
MAX_SCORE = 100


class Normalizer(enum.Enum):
    """The usual ways, by what they need to know of all scores: the engine keeps results while that does not move."""

    DEFAULT = "share of the highest score"
    REVERSED = "the highest score counts least"

    @overload
    def apply(self, scores: Scores) -> Scores: ...

    @overload
    def apply(self, scores: int) -> int: ...

    def apply(self, scores: Scores | int) -> Scores | int:
        """100·s/max; reversed: 100 minus that. All zero stays zero, reversed becomes 100.

        >>> Normalizer.REVERSED.apply(np.array([0, 1, 3])).tolist()
        [100, 67, 0]
        """
        if isinstance(scores, int):
            return int(self.shares(np.array([scores]), max(scores, 0))[0]) if scores else self.of_nothing
        return self.shares(scores, int(np.maximum.reduce(scores, initial=0)))

    @property
    def of_nothing(self) -> int:
        """What nodes get if none scores anything."""
        return MAX_SCORE if self is Normalizer.REVERSED else 0

    def shares(self, scores: Scores, highest: int) -> Scores:
        """The same, where the highest score is known already."""
        reverse = self is Normalizer.REVERSED
        if highest == 0:
            return np.full_like(scores, MAX_SCORE) if reverse else scores
        shares = truncated_divide(scores * MAX_SCORE, highest)
        return MAX_SCORE - shares if reverse else shares

    def share(self, score: int, highest: int) -> int:
        """The same for one score.

        >>> Normalizer.REVERSED.share(1, 3), Normalizer.DEFAULT.share(-1, 3), Normalizer.REVERSED.share(0, 0)
        (67, -33, 100)
        """
        reverse = self is Normalizer.REVERSED
        if highest == 0:
            return MAX_SCORE if reverse else score
        share = abs(score) * MAX_SCORE // highest
        if score < 0:
            share = -share
        return MAX_SCORE - share if reverse else share


def truncated_divide(numerator: NDArray[np.int64], denominator: NDArray[np.int64] | int) -> NDArray[np.int64]:
    """Integer division toward zero, for any signs; the denominator must not be 0."""
    if isinstance(denominator, int) and denominator > 0 and (not len(numerator) or numerator.min() >= 0):
        return numerator // denominator
    quotient = np.abs(numerator) // np.abs(denominator)
    negative = (numerator < 0) != (np.asarray(denominator) < 0)
    return np.where(negative, -quotient, quotient)
