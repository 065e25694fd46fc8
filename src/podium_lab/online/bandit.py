"""Learns to expect rewards from features, one example at a time: ridge regression that forgets.

    A ← γ·A + (1 − γ)·Λ + x·xᵀ        b ← γ·b + r·x      θ = A⁻¹·b

    expected reward = θ·x             its deviation = s·√(xᵀ·A⁻¹·x)

s is the deviation of the errors made so far. Of what was learnt n rewards ago γⁿ is left, so that 1/(1 − γ) rewards
count. Λ holds all weights but the first near 0: a sort of node that was not tried for long is again expected to be like
the others, and is tried again. Where errors grow suddenly (their recent mean is twice the usual one) the world has
changed: nine tenths of what was learnt is forgotten, and for the next rewards the model is not to be trusted.

An example costs the same however many came before: two small matrices are all that is kept.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

RIDGE, OF_FIRST = 0.1, 0.001
"""λ: of all weights, and of the first, which is that of a feature that is always 1."""
FIRST_NOISE = 0.3
"""The deviation of errors to begin with: rewards are between 0 and 1."""
RECENT, USUAL = 0.1, 0.005
"""How much one error counts in the two means."""
SUDDEN, SMALL = 2.0, 0.05
"""Recent errors are sudden from twice the usual ones on, unless they are small."""
JUDGED_FROM = 50
"""Rewards from which errors are compared."""
REMAINDER = 0.1
"""What is left of the examples when the world has changed."""
DISTRUST = 20
"""Rewards after that until the model may be asked."""


class RewardModel(NamedTuple):
    """What was learnt, at one moment: decisions read it, and it never changes."""

    weights: tuple[float, ...]
    factor: Floats
    """float64[size, size], lower triangle: A⁻¹ = factor·factorᵀ."""
    noise: float
    rewards: int
    distrusted: bool

    def expected(self, features: Floats) -> Floats:
        """float64[nodes] of float64[features, nodes]."""
        return weighed(np.array(self.weights), features)

    def deviation(self, features: Floats) -> Floats:
        """The standard deviation of what is expected."""
        parts = np.einsum("jk,jn->kn", self.factor, features)
        deviation: Floats = self.noise * np.sqrt((parts * parts).sum(axis=0))
        return deviation


class RidgeBandit:
    """The sums over all examples, weighted by how long ago they came."""

    def __init__(self, size: int, forgetting: float) -> None:
        self._forgetting = forgetting
        self._ridge: Floats = np.diag([OF_FIRST, *[RIDGE] * (size - 1)])
        self.a: Floats = self._ridge.copy()
        self.b: Floats = np.zeros(size)
        self.rewards = 0
        self.recent_error = self.usual_error = 0.0
        """Means of the absolute errors."""
        self.squared_error = FIRST_NOISE**2
        self.distrusted_until = 0
        """The number of rewards until which the model is not to be trusted."""
        self.changes = 0
        """How often the world has changed."""
        self._weights: Floats = np.zeros(size)

    def learn(self, features: Floats, reward: float) -> None:
        """Take in one example: float64[size], and a reward from 0 to 1."""
        error = abs(reward - float(self._weights @ features))
        remains = self._forgetting
        self.a = remains * self.a + (1 - remains) * self._ridge + np.outer(features, features)
        self.b = remains * self.b + reward * features
        self.rewards += 1
        self._note(error)
        self._weights = _solved(self.a, self.b)

    def _note(self, error: float) -> None:
        rate = max(USUAL, 1 / self.rewards)
        self.usual_error += rate * (error - self.usual_error)
        self.squared_error += rate * (error * error - self.squared_error)
        self.recent_error += max(RECENT, 1 / self.rewards) * (error - self.recent_error)
        if self.rewards < max(JUDGED_FROM, self.distrusted_until):
            return
        if self.recent_error > max(SUDDEN * self.usual_error, SMALL):
            self.a = REMAINDER * self.a + (1 - REMAINDER) * self._ridge
            self.b = REMAINDER * self.b
            self.usual_error = self.recent_error
            self.distrusted_until = self.rewards + DISTRUST
            self.changes += 1

    def model(self) -> RewardModel:
        """What is known now; raises LinAlgError where the sums are no longer those of examples."""
        inverse = np.linalg.inv(self.a)
        factor: Floats = np.linalg.cholesky((inverse + inverse.T) / 2).astype(np.float64)
        return RewardModel(
            tuple(self._weights.tolist()),
            factor,
            math.sqrt(self.squared_error),
            self.rewards,
            self.rewards < self.distrusted_until,
        )

    def restore(self, a: Floats, b: Floats, rewards: int, errors: tuple[float, float, float]) -> None:
        """Take over sums that were kept."""
        self._weights = _solved(a, b)
        self.a, self.b, self.rewards = a, b, rewards
        self.recent_error, self.usual_error, self.squared_error = errors


def weighed(weights: Floats, features: Floats) -> Floats:
    """float64[nodes]: the sum over features; without BLAS, whose threads cost more than such sums."""
    total: Floats = np.einsum("j,jn->n", weights, features)
    return total


def _solved(a: Floats, b: Floats) -> Floats:
    return np.linalg.solve(a, b).astype(np.float64)
