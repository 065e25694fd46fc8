"""Names what can be trained: forms of linear scores, and networks that correct one.

A form says which terms count, and whether groups of pods have weights of their own:

S1   F, st16, surplus, R1, price: the terms of the readable policy
S2   no look at typical pods but for shares: the cheapest
A    all terms but H, Hf and Hg, which cost much and bring nothing; one set for all pods
Bn   the terms of A, one set per group; B with the rank of the node's name, too
C    the terms that matter where pods come and go, trained by churn; J the same, trained by both protocols
JB   the terms of Bn, trained by both protocols
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from podium_lab.learned.network import SEEN, NetworkWeights
from podium_lab.learning.kernel_state import Floats
from podium_plugins.gpu.terms import GROUPS, MEANINGLESS, TERMS

READABLE = {"F": 1.0, "st16": 0.2, "surplus": 0.5, "R1": -0.1, "price": -0.8}
"""The weights of the readable policy, set by hand."""
GUESSES = {"F": 1.0, "st16": 0.1, "surplus": 0.1, "R1": -0.1, "price": -0.1}
"""Where most searches start: FGD with small guesses elsewhere."""
PACKING = {
    "F": 0.5, "st16": 0.2, "surplus": 0.3, "R1": -0.5, "C1": -0.3, "empty": -0.3, "gfree": -0.1, "opened": -0.2,
    "lo": -0.2, "price": -0.5,
}  # fmt: skip
"""Where the searches for churn start: full nodes and devices first."""
_HOSTS = frozenset(("H", "Hf", "Hg"))
_CHURN = (
    "F", "Fg", "st8", "st12", "st16", "surplus", "vfill", "ufill", "nfull", "npart", "logr", "sqrtRC", "C1", "R1",
    "empty", "opened", "lo", "gfree", "R1zero", "price",
)  # fmt: skip
_RANKED = tuple(term for term in TERMS if term not in _HOSTS)
_ALL = tuple(term for term in _RANKED if term != "rank")
_SCALE = dict.fromkeys(("nfull", "npart", "rank"), 0.5)


class ScoreForm(NamedTuple):
    """What is searched for, and how."""

    terms: tuple[str, ...]
    grouped: bool
    start: Mapping[str, float]
    protocols: tuple[str, ...]
    generations: int
    population: int
    sigma: float = 0.15

    @property
    def coordinates(self) -> list[tuple[int | None, int]]:
        """(group or None for all, term) of each number that is searched for."""
        positions = {term: TERMS.index(term) for term in self.terms}
        if not self.grouped:
            return [(None, position) for position in positions.values()]
        return [
            (g, position)
            for g, group in enumerate(GROUPS)
            for term, position in positions.items()
            if term not in MEANINGLESS[group]
        ]

    def scale(self) -> Floats:
        return np.array([_SCALE.get(TERMS[position], 1.0) for _, position in self.coordinates])

    def weights(self, numbers: Floats) -> Floats:
        """float64[groups, terms] of the numbers that are searched for."""
        out = np.zeros((len(GROUPS), len(TERMS)))
        for number, (group, position) in zip(numbers, self.coordinates, strict=True):
            for g, name in enumerate(GROUPS) if group is None else ((group, GROUPS[group]),):
                if TERMS[position] not in MEANINGLESS[name]:
                    out[g, position] = number
        return out

    def numbers(self, weights: Floats | None = None) -> Floats:
        """The numbers that stand for some weights, or where the search starts."""
        if weights is None:
            return np.array([self.start.get(TERMS[position], 0.0) for _, position in self.coordinates])
        columns = [weights[:, p] if group is None else weights[group : group + 1, p] for group, p in self.coordinates]
        return np.array([column[np.abs(column).argmax()] for column in columns])


FORMS = {
    "S1": ScoreForm(tuple(READABLE), False, GUESSES, ("static",), 31, 24),
    "S2": ScoreForm(
        ("st8", "st12", "st16", "surplus", "vfill", "ufill", "R1", "price"), False, GUESSES, ("static",), 31, 24
    ),
    "A": ScoreForm(_ALL, False, GUESSES, ("static",), 60, 32),
    "Bn": ScoreForm(_ALL, True, GUESSES, ("static",), 250, 64),
    "B": ScoreForm(_RANKED, True, GUESSES, ("static",), 250, 64),
    "C": ScoreForm(_CHURN, False, PACKING, ("churn",), 36, 32),
    "J": ScoreForm(_CHURN, False, PACKING, ("static", "churn"), 38, 32),
    "JB": ScoreForm(_ALL, True, PACKING, ("static", "churn"), 50, 80, 0.06),
}


DRAWN = {"first": 0.7, "bias": 0.3, "second": 0.7, "pooled": 0.3}
"""The spread of numbers at the start; the others are 0."""
_COUNTS = ("nfull", "npart")


class NetworkForm(NamedTuple):
    """A network that is searched for, and how: a correction of a linear policy, which starts as none at all.

    The search begins with first layers drawn at random and a last layer of zeros, so that the first candidates decide
    nearly as the linear policy does, and goes on from there by the figure that is judged. There are some 500 numbers,
    so the covariance is kept as its diagonal.
    """

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
