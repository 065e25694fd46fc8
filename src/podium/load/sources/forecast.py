"""Forecasts the next value of a series from how its last steps followed from the steps before.

An autoregression of the differences, ARIMA(5, 1, 0) in the usual letters, fitted by least squares:

    d(t) = φ1·d(t−1) + … + φ5·d(t−5),   d(t) = x(t) − x(t−1)

A series that stands still stays, one that rises steadily goes on rising, and a wave goes on waving. Of a series that is
too short, or on which the fit runs away, nothing is foretold.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

ORDER = 5
SHORTEST = 4 * ORDER
"""Values needed to foretell the next."""


def next_value(series: Sequence[float]) -> float | None:
    """The value after the last; None where that cannot be said.

    >>> next_value([float(each) for each in range(30)])
    30.0
    """
    if len(series) < SHORTEST:
        return None
    values = np.asarray(series, dtype=np.float64)
    if not np.isfinite(values).all():
        return None
    size = float(np.abs(values).max())
    if size == 0:
        return 0.0
    steps = np.diff(values / size)
    before = np.lib.stride_tricks.sliding_window_view(steps, ORDER)
    weights = np.linalg.lstsq(before[:-1], steps[ORDER:], rcond=1e-9)[0]
    found = float(values[-1] + size * (before[-1] @ weights))
    spread = float(values.max() - values.min())
    # The next value may leave the range of all before, but not by more than that range.
    if not values.min() - spread <= found <= values.max() + spread:
        return None
    return round(found, 6)
