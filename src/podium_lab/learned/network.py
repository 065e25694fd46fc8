"""Corrects a linear score by a small network that looks at all nodes a pod fits, in whatever order they come.

    h = softsign(first · terms + bias of the pod's group)                     per node, the same weights for each
    c = second_bias + pooled · [mean of h, largest h]                         over the nodes that fit
    correction = last of the pod's group · softsign(second · h + c)           per node

softsign(x) = x/(1 + |x|). Terms are those of `podium_plugins.gpu.terms` without H, scar and rank. Permuted nodes get
permuted corrections, a node that does not fit changes none, and any number of nodes will do. Where `last` is 0, the
score is the linear one: a training starts there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec
import numpy as np

from podium_plugins.gpu.terms import GROUPS, TERMS, Floats

UNSEEN = frozenset(("H", "Hf", "Hg", "scar", "rank"))
"""Terms that a network does not look at."""
SEEN = tuple(i for i, term in enumerate(TERMS) if term not in UNSEEN)
"""The positions in TERMS of what it looks at."""
MOST_UNITS = 256

Rows = tuple[tuple[float, ...], ...]


class NetworkWeights(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """The numbers of a network as a policy file has them."""

    first: Rows
    """[units][terms that are seen]"""
    bias: Rows
    """[groups][units]"""
    second: Rows
    """[second units][units]"""
    pooled: Rows
    """[second units][2 · units]: for the means, then for the largest."""
    second_bias: tuple[float, ...]
    last: Rows
    """[groups][second units]"""

    def problems(self) -> Iterator[str]:
        """What keeps it from being used."""
        units, more = len(self.first), len(self.second)
        if not (0 < units <= MOST_UNITS and 0 < more <= MOST_UNITS):
            yield f"network: needs 1 to {MOST_UNITS} units in each layer"
            return
        shapes = {
            "first": (self.first, units, len(SEEN)),
            "bias": (self.bias, len(GROUPS), units),
            "second": (self.second, more, units),
            "pooled": (self.pooled, more, 2 * units),
            "secondBias": ((self.second_bias,), 1, more),
            "last": (self.last, len(GROUPS), more),
        }
        for name, (rows, high, wide) in shapes.items():
            if len(rows) != high or any(len(row) != wide for row in rows):
                yield f"network.{name}: must have {high} rows of {wide} numbers"
            elif not all(math.isfinite(number) for row in rows for number in row):
                yield f"network.{name}: some number is not finite"


class PlacementNetwork:
    """A network that is ready to correct scores."""

    def __init__(self, weights: NetworkWeights) -> None:
        self.first: Floats = np.zeros((len(weights.first), len(TERMS)))
        """float64[units, terms]"""
        self.first[:, SEEN] = weights.first
        self.bias: Floats = np.array(weights.bias)
        self.second: Floats = np.array(weights.second)
        self.pooled: Floats = np.array(weights.pooled)
        self.second_bias: Floats = np.array(weights.second_bias)
        self.last: Floats = np.array(weights.last)

    def corrections(self, terms: Floats, group: int) -> Floats:
        """What is added to the score of each node; terms are float64[terms, nodes] of the nodes that fit."""
        if not terms.shape[1]:
            return np.zeros(0)
        hidden = softsign(self.first @ terms + self.bias[group][:, np.newaxis])
        context = self.second_bias + self.pooled @ np.concatenate([hidden.mean(axis=1), hidden.max(axis=1)])
        found: Floats = self.last[group] @ softsign(self.second @ hidden + context[:, np.newaxis])
        return found


def softsign(numbers: Floats) -> Floats:
    """x/(1 + |x|), in place."""
    below = np.abs(numbers)
    below += 1.0
    numbers /= below
    return numbers
