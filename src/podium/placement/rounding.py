"""Rounds as Go does: half away from zero. Python and NumPy round half to even, which is another whole number.

Each function has a form for one number and one for arrays; they agree to the last bit.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from podium.framework.normalize import MAX_SCORE, Scores

Floats = NDArray[np.float64]


def rounded(number: float) -> int:
    """The nearest whole number, halves away from zero.

    >>> [rounded(each) for each in (0.5, 1.5, 2.5, -0.5, 0.49999999999999994)]
    [1, 2, 3, -1, 0]
    """
    whole = math.trunc(number)
    if abs(number - whole) >= 0.5:
        whole += 1 if number > 0 else -1
    return whole


def rounded_all(numbers: Floats) -> NDArray[np.int64]:
    """The same for each number; they must be finite and fit into 64 bits."""
    whole = np.trunc(numbers)
    whole += np.copysign(np.abs(numbers - whole) >= 0.5, numbers)
    return whole.astype(np.int64)


def as_score(points: float) -> int:
    """A float as a score: rounded, within 0–100."""
    if points >= MAX_SCORE:
        return MAX_SCORE
    if not points > 0:
        return 0
    whole = int(points)  # as `rounded` does, without the call: scores are asked for in every cycle
    return whole + 1 if points - whole >= 0.5 else whole


def as_scores(points: Floats) -> Scores:
    """The same for each number; what is no number scores 0."""
    known = np.where(np.isnan(points), 0.0, points)
    return rounded_all(np.clip(known, 0.0, float(MAX_SCORE)))
