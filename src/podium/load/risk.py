"""Computes how likely the load of a node exceeds what its pods have requested, from measured mean and deviation.

The load is taken to follow a Beta distribution with that mean μ and deviation σ, as shares of what the node offers;
with k = μ(1 − μ)/σ² − 1 it has the parameters μk and (1 − μ)k. A σ too large for any such distribution is cut at
√(0.99·μ(1 − μ)). Without deviation the load is its mean. Where limits are below the offer, load cannot exceed them, so
the probability is that under the condition that it does not. So there is no risk where pods have no limits above their
requests, unless it is next to impossible that load stays below them; `risk_bounds` tells from where on it is not.

`load_risk` is about one node, `LoadRisk` about all rows; they agree to the last bit. The latter remembers its answers,
because a fit costs more than everything else about a score, and depends on nothing of the pod that is being placed.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from podium.load.beta import Floats, possible_from, probabilities, probability

LEAST_DEVIATION = 1e-15
_CUT = 0.99
_ROUNDING = 1e-9

Amounts = NDArray[np.int64]


def load_risk(mean: float, deviation: float, requested: int, limit: int, offer: int) -> float:
    """Mean and deviation in percent; requested and limit without the pod to be placed."""
    if offer <= 0:
        return 0.0
    mu, sigma = _within(mean / 100), max(0.0, deviation / 100)
    requested = min(requested, offer)
    bounded = limit < offer and requested <= limit
    if mu == 0 or (bounded and limit == 0):
        return 0.0
    threshold = float(requested) / float(offer)
    sigma = min(sigma, math.sqrt(_CUT * mu * (1 - mu)))
    if sigma < LEAST_DEVIATION:
        return 0.0 if mu <= threshold else 1.0
    k = mu * (1 - mu) / (sigma * sigma) - 1
    a, b = mu * k, (1 - mu) * k
    below = probability(threshold, a, b)
    if bounded:
        within = below if limit == requested else probability(float(limit) / float(offer), a, b)
        if within > 0:
            below = _within(below / within)
    return 1 - below


def _within(share: float) -> float:
    return min(1.0, max(0.0, share))


class LoadRisk:
    """The risk of each row; a row is computed again when something about it changed."""

    def __init__(self) -> None:
        self._inputs: Floats = np.empty((5, 0))
        self._risks: Floats = np.empty(0)

    def over_rows(self, mean: Floats, deviation: Floats, requested: Amounts, limit: Amounts, offer: Amounts) -> Floats:
        """float64[rows]; 0 where neither mean nor deviation is known. To be read only."""
        nothing = np.isnan(mean) & np.isnan(deviation)
        # A mean of 0 is no risk, which is what is said of rows of which nothing is known.
        mean = np.where(np.isnan(mean), 0.0, mean)
        deviation = np.where(np.isnan(deviation), 0.0, deviation)
        inputs = np.array([np.where(nothing, 0.0, mean), deviation, requested, limit, offer], dtype=np.float64)
        if inputs.shape != self._inputs.shape:
            self._risks = load_risks(*inputs)
        else:
            changed = np.flatnonzero((inputs != self._inputs).any(axis=0))
            if len(changed):
                self._risks[changed] = load_risks(*inputs[:, changed])
        self._inputs = inputs
        return self._risks


def risk_bounds(mean: Floats, deviation: Floats) -> Floats:
    """float64[2, rows], shares of the offer: from the first on, requests that are also limits are no risk; requests
    below the second are surely exceeded, if there are limits. In between `load_risk` decides.

    Mean and deviation are in percent and NaN where nothing is known, as for `LoadRisk.over_rows`.
    """
    mu, sigma = _shares(np.where(np.isnan(mean), 0.0, mean), np.where(np.isnan(deviation), 0.0, deviation))
    steady = sigma < LEAST_DEVIATION
    certain = possible_from(*_parameters(mu, np.where(steady, 1.0, sigma)))
    return np.array([np.where(steady, mu * (1 + _ROUNDING), certain), np.where(steady, mu * (1 - _ROUNDING), 0.0)])


def load_risks(mean: Floats, deviation: Floats, requested: Floats, limit: Floats, offer: Floats) -> Floats:
    """`load_risk` of each."""
    some = offer > 0
    whole = np.where(some, offer, 1.0)
    mu, sigma = _shares(mean, deviation)
    requested = np.minimum(requested, offer)
    bounded = (limit < offer) & (requested <= limit)
    threshold = requested / whole
    fixed = ~some | (mu == 0) | (bounded & (limit == 0))
    steady = ~fixed & (sigma < LEAST_DEVIATION)
    risks = np.where(steady & (mu > threshold), 1.0, 0.0)
    fitted = np.flatnonzero(~fixed & ~steady)
    if not len(fitted):
        return risks
    bounded, threshold = bounded[fitted], threshold[fitted]
    a, b = _parameters(mu[fitted], sigma[fitted])
    equal = limit[fitted] == requested[fitted]
    risky = ~(bounded & equal & (threshold >= possible_from(a, b)))
    fitted, a, b = fitted[risky], a[risky], b[risky]
    bounded, threshold, equal = bounded[risky], threshold[risky], equal[risky]
    below = within = probabilities(threshold, a, b)
    wider = np.flatnonzero(bounded & ~equal)
    if len(wider):
        within = below.copy()
        within[wider] = probabilities((limit[fitted] / whole[fitted])[wider], a[wider], b[wider])
    possible = within > 0
    shares = np.clip(below / np.where(possible, within, 1.0), 0.0, 1.0)
    risks[fitted] = 1 - np.where(bounded & possible, shares, below)
    return risks


def _shares(mean: Floats, deviation: Floats) -> tuple[Floats, Floats]:
    """μ and σ, the latter cut."""
    mu, sigma = np.clip(mean / 100, 0.0, 1.0), np.maximum(0.0, deviation / 100)
    return mu, np.minimum(sigma, np.sqrt(_CUT * mu * (1 - mu)))


def _parameters(mu: Floats, sigma: Floats) -> tuple[Floats, Floats]:
    """a and b of the distribution."""
    k = mu * (1 - mu) / (sigma * sigma) - 1
    return mu * k, (1 - mu) * k
