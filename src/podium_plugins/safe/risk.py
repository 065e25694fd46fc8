"""Computes the risk that a node's utilisation, with mean mu and deviation sigma, exceeds a threshold T.

Utilisation is taken to follow the Beta distribution with these moments: with k = mu·(1 − mu)/sigma² − 1 it has the
parameters mu·k and (1 − mu)·k, and the risk is 1 − I_T. Without deviation the risk is 0 up to the threshold and 1
beyond it. Moments that no Beta distribution has (sigma² ≥ mu·(1 − mu)) count as full risk.
"""

from __future__ import annotations

import numpy as np

from podium.load.beta import Floats, probabilities

STEADY = 1e-6
"""A smaller deviation is none."""


def overload_risks(mu: Floats, sigma: Floats, threshold: float) -> Floats:
    """The risk for each mu with its sigma; NaN where mu is."""
    spread, room = sigma * sigma, mu * (1 - mu)
    steady = sigma < STEADY
    risks = np.where(steady & (mu <= threshold), 0.0, 1.0)
    risks[mu == 0] = 0.0
    risks[np.isnan(mu)] = np.nan
    fits = ~steady & (mu > 0) & (spread < room)
    mean = mu[fits]
    k = np.maximum(room[fits] / spread[fits] - 1, np.finfo(np.float64).tiny)
    risks[fits] = 1 - probabilities(np.full(len(mean), threshold), mean * k, (1 - mean) * k)
    return risks
