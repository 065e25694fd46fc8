"""Names the networks that can be trained: a correction of a linear policy, which starts as none at all.

The search begins with first layers drawn at random and a last layer of zeros, so that the first candidates decide
nearly as the linear policy does, and goes on from there by the figure that is judged. There are some 500 numbers, so
the covariance is kept as its diagonal.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from podium_lab.learned.network import SEEN, NetworkWeights
from podium_lab.learning.kernel_state import Floats
from podium_plugins.gpu.terms import GROUPS, TERMS

DRAWN = {"first": 0.7, "bias": 0.3, "second": 0.7, "pooled": 0.3}
"""The spread of numbers at the start; the others are 0."""
_COUNTS = ("nfull", "npart")


class NetworkForm(NamedTuple):
    """What is searched for, and how."""

    units: int
    protocols: tuple[str, ...]
    generations: int
    population: int
    sigma: float = 0.1

    @property
    def shapes(self) -> dict[str, tuple[int, int]]:
        """The rows and columns of each layer, in the order of the numbers that are searched for."""
        units, groups = self.units, len(GROUPS)
        return {
            "first": (units, len(SEEN)),
            "bias": (groups, units),
            "second": (units, units),
            "pooled": (units, 2 * units),
            "second_bias": (1, units),
            "last": (groups, units),
        }

    def scale(self) -> Floats:
        parts = {name: np.ones(shape) for name, shape in self.shapes.items()}
        parts["first"] *= [0.3 if TERMS[i] in _COUNTS else 1.0 for i in SEEN]
        parts["last"] *= 0.5
        return np.concatenate([part.ravel() for part in parts.values()])

    def start(self, seed: int) -> Floats:
        """Numbers that correct nothing."""
        rng = np.random.default_rng([seed, 5])
        drawn = [DRAWN.get(name, 0.0) * rng.standard_normal(shape).ravel() for name, shape in self.shapes.items()]
        return np.concatenate(drawn) * np.where(self.scale() < 0.5, self.scale(), 1.0)

    def network(self, numbers: Floats, digits: int = 17) -> NetworkWeights:
        """The network that some numbers stand for."""
        found, at = {}, 0
        for name, (high, wide) in self.shapes.items():
            part = np.round(numbers[at : at + high * wide], digits).reshape(high, wide)
            found[name] = tuple(map(tuple, part.tolist()))
            at += high * wide
        second_bias = found.pop("second_bias")[0]
        return NetworkWeights(second_bias=second_bias, **found)


NETWORKS = {"N": NetworkForm(8, ("static",), 300, 40), "NC": NetworkForm(8, ("churn",), 60, 44)}
