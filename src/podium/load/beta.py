"""Computes the Beta distribution: the probability that a share between 0 and 1 is at most x.

This is the regularised incomplete beta function I_x(a, b), by its continued fraction (modified Lentz), taken from
whichever side converges quickly: I_x(a, b) = 1 − I_{1−x}(b, a). Where both parameters are above 100,000 the
distribution is narrower than 0.2 %; there the normal distribution with a correction for skewness is as good and does
not need thousands of terms. The form for one number and the one for arrays take the same steps and agree to the last
bit.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

NARROW: Final = 1e5
_PRECISION: Final = 1e-15
_MOST_TERMS: Final = 5000
_TINY: Final = 1e-300
_ODD: Final = 1e-4
"""Below this all weight is at the very ends."""
_FAR_FROM_ZERO: Final = -500.0
"""A logarithm: numbers end at about -745."""


def probability(x: float, a: float, b: float) -> float:
    """I_x(a, b) for positive a and b; 0 below x = 0 and 1 above x = 1.

    >>> probability(0.5, 2, 2), round(probability(0.25, 2, 3), 9)
    (0.5, 0.26171875)
    """
    if not x > 0:
        return 0.0
    if x >= 1:
        return 1.0
    if a < _TINY or b < _TINY:
        return 1.0 if a < _TINY else 0.0
    if min(a, b) > NARROW:
        return _narrow(x, a, b)
    front = _front(x, a, b)
    left = x < (a + 1) / (a + b + 2)
    answer = front * _fraction(x, a, b) / a if left else 1 - front * _fraction(1 - x, b, a) / b
    return answer if 0 <= answer <= 1 else 0.0 if answer < 0.5 else 1.0


def possible_from(a: Floats, b: Floats) -> Floats:
    """Shares from which on `probability` is above 0 beyond doubt, found without its fraction; 1 where none is known.

    From (a + 1)/(a + b + 2) on, which is next to the mean, it is never small. Before that the fraction is a matter of
    few powers of ten, so it is the front x^a·(1 − x)^b/B(a, b) that decides how close to 0 the whole gets. There 1 − x
    is at least b/(a + b), which gives a bound for x.
    """
    usual = (a > _ODD) & (a < NARROW) & (b > _ODD) & (b < NARROW)
    a, b = np.where(usual, a, 1.0), np.where(usual, b, 1.0)
    needed = (_FAR_FROM_ZERO + b * np.log((a + b) / b) - _least_minus_log_beta(a, b)) / a
    shares = np.minimum((a + 1) / (a + b + 2), np.exp(np.minimum(needed, 0.0)))
    return np.where(usual, shares, 1.0)


def _least_minus_log_beta(a: Floats, b: Floats) -> Floats:
    """What −log B(a, b) is at least, by Stirling's formula, and because B(a, b) is at most 1/a + 1/b."""
    both = a + b
    stirling = _stirling(both) - _stirling(a) - _stirling(b) - 1 / (12 * a) - 1 / (12 * b)
    least: Floats = np.maximum(stirling, -np.log(1 / a + 1 / b))
    return least


def _stirling(z: Floats) -> Floats:
    """At most log Γ(z), and less by at most 1/(12z)."""
    answer: Floats = 0.5 * np.log(2 * np.pi / z) + z * np.log(z) - z
    return answer


def probabilities(x: Floats, a: Floats, b: Floats) -> Floats:
    """The same for each x with its a and b."""
    answer = np.where(x >= 1, 1.0, 0.0)
    inside = (x > 0) & (x < 1)
    answer[inside & (a < _TINY)] = 1.0
    inside &= (a >= _TINY) & (b >= _TINY)
    narrow = inside & (np.minimum(a, b) > NARROW)
    for i in np.flatnonzero(narrow).tolist():
        answer[i] = _narrow(float(x[i]), float(a[i]), float(b[i]))
    wide = np.flatnonzero(inside & ~narrow)
    if len(wide):
        answer[wide] = _wide(x[wide], a[wide], b[wide])
    return answer


def _wide(x: Floats, a: Floats, b: Floats) -> Floats:
    front = np.array(list(map(_front, x.tolist(), a.tolist(), b.tolist())))
    with np.errstate(all="ignore"):
        left = x < (a + 1) / (a + b + 2)
        near, far = np.where(left, a, b), np.where(left, b, a)
        part = front * _fractions(np.where(left, x, 1 - x), near, far) / near
    answer = np.where(left, part, 1 - part)
    inside: Floats = np.where((answer >= 0) & (answer <= 1), answer, np.where(answer < 0.5, 0.0, 1.0))
    return inside


def _front(x: float, a: float, b: float) -> float:
    """x^a·(1 − x)^b/B(a, b), one by one for arrays, too: NumPy has no log Γ, and other logarithms in the last bit."""
    log_beta = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    return math.exp(a * math.log(x) + b * math.log1p(-x) - log_beta)


def _fraction(x: float, a: float, b: float) -> float:
    """The continued fraction, from its front. No part of it is let become 0, so that it can be divided by."""
    c, d = 1.0, 1 - (a + b) * x / (a + 1)
    d = 1 / (_TINY if -_TINY < d < _TINY else d)
    h = d
    for m in range(1, _MOST_TERMS):
        at = a + 2 * m
        even = m * (b - m) * x / ((a - 1 + 2 * m) * at)
        d = 1 + even * d
        d = 1 / (_TINY if -_TINY < d < _TINY else d)
        c = 1 + even / c
        c = _TINY if -_TINY < c < _TINY else c
        h *= d * c
        odd = -(a + m) * (a + b + m) * x / (at * (a + 1 + 2 * m))
        d = 1 + odd * d
        d = 1 / (_TINY if -_TINY < d < _TINY else d)
        c = 1 + odd / c
        c = _TINY if -_TINY < c < _TINY else c
        step = d * c
        h *= step
        if -_PRECISION < step - 1 < _PRECISION:
            break
    return h


def _fractions(x: Floats, a: Floats, b: Floats) -> Floats:
    """The same for arrays; those that are done drop out."""
    answer = np.empty_like(x)
    left = np.arange(len(x))
    c, d = np.ones_like(x), 1 / _away_from_zero(1 - (a + b) * x / (a + 1))
    h = d.copy()
    for m in range(1, _MOST_TERMS):
        even = m * (b - m) * x / ((a - 1 + 2 * m) * (a + 2 * m))
        d = 1 / _away_from_zero(1 + even * d)
        c = _away_from_zero(1 + even / c)
        h *= d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 1 + 2 * m))
        d = 1 / _away_from_zero(1 + odd * d)
        c = _away_from_zero(1 + odd / c)
        step = d * c
        h *= step
        going = ~(np.abs(step - 1) < _PRECISION)
        if not going.all():
            done = ~going
            answer[left[done]] = h[done]
            left = left[going]
            x, a, b, c, d, h = (each[going] for each in (x, a, b, c, d, h))
            if not len(left):
                break
    answer[left] = h
    return answer


def _away_from_zero(numbers: Floats) -> Floats:
    moved: Floats = np.where(np.abs(numbers) < _TINY, _TINY, numbers)
    return moved


def _narrow(x: float, a: float, b: float) -> float:
    total = a + b
    deviation = math.sqrt(a / total * (b / total) / (total + 1))
    z = (x - a / total) / deviation
    skewness = 2 * (b - a) / (total + 2) * math.sqrt((total + 1) / a / b)
    density = math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    answer = math.erfc(-z / math.sqrt(2)) / 2 - skewness / 6 * (z * z - 1) * density
    return min(1.0, max(0.0, answer))
