"""Names the forms of linear scores that can be trained: which terms, whether groups of pods have weights of their own.

S1   F, st16, surplus, R1, price: the terms of the readable policy
S2   no look at typical pods but for shares: the cheapest
A    all terms, one set for all pods; Bn, B one set per group, B with the rank of the node's name
C    the terms that matter where pods come and go, trained by churn; J the same, trained by both protocols
JB   the terms of Bn, trained by both protocols
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

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
_HOSTS = ("H", "Hf", "Hg")
_CHURN = (
    "F", "Fg", "st8", "st12", "st16", "surplus", "vfill", "ufill", "nfull", "npart", "logr", "sqrtRC", "C1", "R1",
    "empty", "opened", "lo", "gfree", "R1zero", "price",
)  # fmt: skip
_ALL = tuple(term for term in TERMS if term != "rank")
_SCALE = {**dict.fromkeys(_HOSTS, 0.3), **dict.fromkeys(("nfull", "npart", "rank"), 0.5)}


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
    "A": ScoreForm(_ALL, False, GUESSES, ("static",), 41, 48),
    "Bn": ScoreForm(_ALL, True, GUESSES, ("static",), 112, 64),
    "B": ScoreForm(TERMS, True, GUESSES, ("static",), 112, 64),
    "C": ScoreForm(_CHURN, False, PACKING, ("churn",), 43, 32),
    "J": ScoreForm(_CHURN, False, PACKING, ("static", "churn"), 38, 32),
    "JB": ScoreForm(_ALL, True, PACKING, ("static", "churn"), 50, 80, 0.06),
}
