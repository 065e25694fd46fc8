"""Derives one generator of random numbers per purpose from a seed."""

from __future__ import annotations

import numpy as np

_PURPOSES = ("order", "arrivals", "lifetimes", "shapes", "usage", "faults", "delays", "rewards")


def generator(seed: int, purpose: str) -> np.random.Generator:
    """Random numbers for one purpose: what is drawn for another does not move them."""
    return np.random.default_rng([seed, _PURPOSES.index(purpose)])
