"""Scales plugins' scores (0 to 100 each) to the points of an extender (0 to 10, by the protocol).

kube-scheduler multiplies each point of an extender by its weight and by ten, so that ten points count as much as a
plugin's 100.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

HIGHEST_SCORE: Final = 100
"""A plugin's."""
MOST_POINTS: Final = 10
"""An extender's."""

Points = NDArray[np.int64]


def scaled_to_points(total: Points, weights: int, most_points: int = MOST_POINTS) -> Points:
    """The weighted mean of scores, whose weighted sum is `total`, as points from 0 to `most_points`, halves up.

    >>> scaled_to_points(np.array([0, 44, 45, 100, 200]), weights=2).tolist()
    [0, 2, 2, 5, 10]
    """
    full = HIGHEST_SCORE * weights
    points: Points = (2 * most_points * total + full) // (2 * full)
    return points
