"""Learns how large pods are, and how much they differ: moments of their requests, from the pods that come.

    c ← min(c + 1, 100), f = 1/c
    mean ← (1 − f)·mean + f·d        second ← (1 − f)·second + f·d·dᵀ

The first hundred pods count equally; from then on each new one counts a hundredth, so that the mix of the last few
hundred decides. Amounts are as requested; they are compared with the size of nodes only when that matters.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MOST_PODS = 100

Floats = NDArray[np.float64]


class DemandMoments:
    def __init__(self, resources: int) -> None:
        self.mean: Floats = np.zeros(resources)
        self.second: Floats = np.zeros((resources, resources))
        """The mean of the products of any two amounts."""
        self.pods = 0

    def learn(self, demand: Floats) -> None:
        self.pods = min(self.pods + 1, MOST_PODS)
        share = 1 / self.pods
        self.mean = (1 - share) * self.mean + share * demand
        self.second = (1 - share) * self.second + share * np.outer(demand, demand)

    @property
    def covariance(self) -> Floats:
        return self.second - np.outer(self.mean, self.mean)
