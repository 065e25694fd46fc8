"""Policies for tests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from podium.placement.gpu.terms import GROUPS, MEANINGLESS, TERMS
from podium.plugins.learned.policy_file import API_VERSION, SCHEMA, Calibration, PolicyFile, TrainedOn, encoded

PROVENANCE = {"codeVersion": "1", "command": "test", "lists": {"a": "b"}, "seeds": [1000, 1001], "budget": "none"}


def policy(weights: NDArray[np.float64] | dict[str, float], *, trained_on: TrainedOn | None = None) -> PolicyFile:
    """A policy with the same weights for all groups, or a matrix of them."""
    by_group = {
        group: {
            term: float(weights[term] if isinstance(weights, dict) else weights[g, t])
            for t, term in enumerate(TERMS)
            if term not in MEANINGLESS[group] and (not isinstance(weights, dict) or term in weights)
        }
        for g, group in enumerate(GROUPS)
    }
    return PolicyFile(
        api_version=API_VERSION,
        kind="linear",
        name="test",
        version="1",
        terms_hash=SCHEMA,
        weights=by_group,
        calibration=Calibration(50.0, 25.0),
        trained_on=trained_on or TrainedOn(),
        provenance=PROVENANCE,
    )


def random_policy(seed: int) -> PolicyFile:
    """A policy with weights for every term and group."""
    return policy(np.random.default_rng(seed).normal(scale=0.3, size=(len(GROUPS), len(TERMS))))


def written(path: Path, given: PolicyFile) -> Path:
    path.write_bytes(encoded(given))
    return path
