"""Policies for tests."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from podium_lab.learned.network import SEEN, NetworkWeights
from podium_lab.learned.policy_file import API_VERSION, SCHEMA, Calibration, PolicyFile, TrainedOn, encoded
from podium_plugins.gpu.terms import GROUPS, MEANINGLESS, TERMS

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


def random_network(seed: int, size: float = 0.3) -> NetworkWeights:
    """A network of 4 and 3 units."""
    rng = np.random.default_rng([seed, 1])

    def rows(high: int, wide: int, scale: float) -> tuple[tuple[float, ...], ...]:
        return tuple(map(tuple, rng.normal(scale=scale, size=(high, wide)).tolist()))

    return NetworkWeights(
        first=rows(4, len(SEEN), 0.5),
        bias=rows(len(GROUPS), 4, 0.5),
        second=rows(3, 4, 1.0),
        pooled=rows(3, 8, 1.0),
        second_bias=rows(1, 3, 0.5)[0],
        last=rows(len(GROUPS), 3, size),
    )


def network_policy(seed: int) -> PolicyFile:
    """A policy of kind network with numbers everywhere."""
    return msgspec.structs.replace(random_policy(seed), kind="network", network=random_network(seed))


def written(path: Path, given: PolicyFile) -> Path:
    path.write_bytes(encoded(given))
    return path
