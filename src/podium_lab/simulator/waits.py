"""Counts how long pods waited for a node, in bins whose number does not grow with the pods.

A bin is 2 % wide from a millisecond up, and one holds those that waited less. Mean and maximum are exact, quantiles are
those of the bins, so at most 2 % off.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

SMALLEST = 0.001
GROWTH = math.log(1.02)
BINS = 1200
"""Up to some 250 days."""


class WaitTimes:
    """How many pods waited how long."""

    def __init__(self) -> None:
        self.counts = [0] * BINS
        self.number = 0
        self.total = 0.0
        self.longest = 0.0

    def add(self, seconds: float) -> None:
        self.number += 1
        if seconds < SMALLEST:
            self.counts[0] += 1
            return
        self.total += seconds
        self.longest = max(self.longest, seconds)
        self.counts[min(BINS - 1, 1 + int(math.log(seconds / SMALLEST) / GROWTH))] += 1

    def add_all(self, others: WaitTimes) -> None:
        """Pods that were counted elsewhere."""
        self.number += others.number
        self.total += others.total
        self.longest = max(self.longest, others.longest)
        self.counts = [mine + theirs for mine, theirs in zip(self.counts, others.counts, strict=True)]

    @property
    def mean(self) -> float:
        return self.total / self.number if self.number else math.nan

    def quantiles(self, *shares: float) -> list[float]:
        """The waits that so large a share of pods did not exceed; NaN before the first."""
        if not self.number:
            return [math.nan] * len(shares)
        reached = np.cumsum(self.counts)
        found = np.searchsorted(reached, [share * self.number for share in shares])
        return [min(self.longest, float(each)) for each in bin_ends()[np.minimum(found, BINS - 1)]]


def bin_ends() -> NDArray[np.float64]:
    """float64[bins]: the longest wait of each bin, 0 for the first."""
    ends: NDArray[np.float64] = SMALLEST * np.exp(GROWTH * np.arange(BINS))
    ends[0] = 0.0
    return ends
