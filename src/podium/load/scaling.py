"""Turns measured values into scores from 0 to 100: which way is better, on what scale, and what unknown values count.

    minmax   the best of all nodes gets 100, the worst 0, the others in proportion
    rank     by place: 100 for the best, 0 for the worst, equal values equal scores
    range    a fixed scale: 0 at one end, 100 at the other, clipped beyond

Scales reach over all nodes that were measured, not over those that happen to be feasible for a pod: so a score stays
what it is until the next measurement, and costs nothing in between. Where all values are equal, all nodes get 100.

Also rounds as Go does: half away from zero. Python and NumPy round half to even, which is another whole number.

Each function has a form for one number and one for arrays; they agree to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
import numpy.ma
from numpy.typing import NDArray

from podium.framework.normalize import MAX_SCORE, Scores

Better = Literal["lower", "higher"]
Scale = Literal["minmax", "rank", "range"]
Missing = Literal["neutral", "worst", "best"]
Floats = NDArray[np.float64]


def scaled(
    values: Mapping[str, float], better: Better, scale: Scale, ends: tuple[float, float] = (0.0, 1.0)
) -> dict[str, int]:
    """The score of each node; `ends` are the lower and the upper end of a fixed range.

    >>> scaled({"a": 2.0, "b": 4.0, "c": 3.0}, "lower", "minmax")
    {'a': 100, 'b': 0, 'c': 50}
    """
    if not values:
        return {}
    numbers = np.fromiter(values.values(), dtype=np.float64, count=len(values))
    if better == "lower":
        numbers, ends = -numbers, (-ends[1], -ends[0])
    if scale == "rank":
        shares = _rank_shares(numbers)
    else:
        low, high = (float(numbers.min()), float(numbers.max())) if scale == "minmax" else ends
        # Halved, because the difference of two large numbers may be too large for a number.
        width = high / 2 - low / 2
        shares = (numbers / 2 - low / 2) / width if width > 0 else np.ones(len(numbers))
    scores = np.floor(np.clip(shares, 0.0, 1.0) * MAX_SCORE + 0.5).astype(np.int64)
    return dict(zip(values, scores.tolist(), strict=True))


def _rank_shares(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """The share of the others that are not ahead of each: 1 for the highest, and for all that equal it."""
    others = len(numbers) - 1
    if not others:
        return np.ones(1)
    ahead = len(numbers) - np.searchsorted(np.sort(numbers), numbers, side="right")
    return 1 - ahead / others


def where_missing(known: Mapping[str, int], rule: Missing) -> int:
    """The score of a node of which nothing is known: the median of the others, or an end of the scale."""
    if rule == "neutral":
        return int(median(list(known.values()))) if known else 0
    return MAX_SCORE if rule == "best" else 0


def median(values: Sequence[float] | NDArray[np.float64]) -> float:
    """numpy's median, with nothing left to import when it is first called."""
    return float(np.median(values))


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
