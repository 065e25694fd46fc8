"""Turns raw scores into whole scores from 0 to 100 without changing which nodes are best.

The best node gets 100, the worst 0, those between lie on the line between them; where all are equal, all get 50. A node
that isn't a best one stays below 100, also where rounding would lift it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from podium.framework import MAX_SCORE, Scores

NEUTRAL = 50


def calibrated(raw: NDArray[np.floating]) -> Scores:
    """Scores of finite numbers.

    >>> calibrated(np.array([3.0, 1.0, 2.999])).tolist(), calibrated(np.array([7.0, 7.0])).tolist()
    ([100, 0, 99], [50, 50])
    """
    if not len(raw):
        return np.zeros(0, dtype=np.int64)
    numbers = raw.astype(np.float64) / 2  # halved: the difference of two large numbers may be too large for a number
    low, high = float(numbers.min()), float(numbers.max())
    if low == high:
        return np.full(len(raw), NEUTRAL, dtype=np.int64)
    width = high - low
    shares = (numbers - low) / width if width > 1e-300 else (numbers > low).astype(np.float64)
    scores: Scores = np.rint(MAX_SCORE * shares).astype(np.int64)
    scores[(scores == MAX_SCORE) & (numbers < high)] = MAX_SCORE - 1
    return scores
