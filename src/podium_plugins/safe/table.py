"""Tabulates for the log the distribution that a risk is read from: 21 lines from nothing in use to all in use.

For each utilisation x: the density, the probability that usage is at most x, and how much further it goes on average
where it exceeds x (the mean residual life).
"""

from __future__ import annotations

import math

from podium.load.beta import probability

LINES = 21


def table(mu: float, sigma: float) -> str:
    """Empty where no Beta distribution has these moments.

    >>> print(table(0.5, 0.28867513459481287).splitlines()[11])
    0.50   1.0000   0.5000   0.2500
    """
    spread = sigma * sigma
    if not (0 < mu < 1 and 0 < spread < mu * (1 - mu)):
        return ""
    k = mu * (1 - mu) / spread - 1
    a, b = mu * k, (1 - mu) * k
    lines = ["   x  density      cdf      mrl"]
    for number in range(LINES):
        x = number / (LINES - 1)
        below = probability(x, a, b)
        above = 1 - below
        # The mean of what lies above x is that of a Beta distribution with one more in its first parameter.
        rest = (mu * (1 - probability(x, a + 1, b)) - x * above) / above if above > 0 else 0.0
        lines.append(f"{x:.2f} {_density(x, a, b):8.4f} {below:8.4f} {max(rest, 0.0):8.4f}")
    return "\n".join(lines)


def _density(x: float, a: float, b: float) -> float:
    if not 0 < x < 1:
        end = a if x <= 0 else b
        return 0.0 if end > 1 else math.inf if end < 1 else b if x <= 0 else a
    log_beta = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    return math.exp(min((a - 1) * math.log(x) + (b - 1) * math.log1p(-x) - log_beta, 700.0))
