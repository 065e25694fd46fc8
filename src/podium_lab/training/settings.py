"""Holds the settings of a training: what comes out depends on these alone."""

from __future__ import annotations

import hashlib
from typing import Literal

import msgspec

Algorithm = Literal["ppo", "dqn"]

TRAINED_FROM = 1_000_000
"""Episodes of trainings have seeds from here on, so that they don't meet those of an evaluation."""
VALIDATED_FROM = 900_000
"""Episodes by which the best weights are chosen have seeds from here to TRAINED_FROM."""
PER_SEED = 10_000


class TrainingSettings(msgspec.Struct, frozen=True, kw_only=True):
    """One training."""

    algorithm: Algorithm
    objective: str
    scenario: str
    """The path of the scenario; empty: the built-in one."""
    scenario_hash: str
    """The SHA-256 of the scenario as it is read."""
    seed: int = 1
    steps: int = 1_000_000
    """Decisions, after cloning."""
    cloning: int = 200_000
    """Decisions from which the heuristic is learned first."""
    clusters: int = 64
    horizon: int = 128
    """Decisions of each cluster between two updates."""
    episodes: int = 256
    """Different episodes to train on."""
    validation: int = 32
    """Episodes by which the best weights are chosen."""
    units: int = 64
    """The width of the scorer's layers."""
    gamma: float = 0.99
    learning_rate: float = 3e-4
    buffer: int = 20_000
    """Decisions that DQN remembers."""

    @property
    def digest(self) -> str:
        """What a checkpoint must agree with."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()

    @property
    def per_update(self) -> int:
        return self.clusters * self.horizon

    @property
    def cloning_updates(self) -> int:
        return -(-self.cloning // self.per_update)

    @property
    def updates(self) -> int:
        """All updates, cloning included."""
        return self.cloning_updates + -(-self.steps // self.per_update)

    @property
    def train_seeds(self) -> range:
        first = TRAINED_FROM + self.seed * PER_SEED
        return range(first, first + self.episodes)

    @property
    def validation_seeds(self) -> range:
        return range(VALIDATED_FROM, VALIDATED_FROM + self.validation)
