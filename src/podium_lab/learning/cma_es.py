"""Searches for weights with CMA-ES: samples around a mean, and moves mean and covariance towards the better ones.

Full covariance, or its diagonal where there are many coordinates (Ros and Hansen, "A Simple Modification in CMA-ES
Achieving Linear Time and Space Complexity"), and the usual constants (Hansen's tutorial, "The CMA Evolution Strategy").
The result is the running mean of the distribution's mean, not the best candidate: with noisy figures the best was the
luckiest. What is drawn in a generation depends on the seed and the generation alone, so a search that was stopped goes
on as if it had not been. Candidates are rounded and made with the symmetric root of the covariance, which is unique:
processors whose linear algebra differs in the last bit try the same candidates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
DIGITS = 6
"""The decimals of a candidate."""
INERTIA = 0.9
"""How much of the running mean each generation keeps."""


class Search(NamedTuple):
    """Where a search stands after some generations."""

    seed: int
    population: int
    scale: Floats
    """How far each coordinate may be expected to go."""
    mean: Floats
    sigma: float
    covariance: Floats
    """float64[coordinates, coordinates], or its diagonal alone."""
    path: Floats
    sigma_path: Floats
    generation: int
    result: Floats
    """The running mean."""


def begin(start: Floats, scale: Floats, sigma: float, population: int, seed: int, *, diagonal: bool = False) -> Search:
    size = len(start)
    zeros = np.zeros(size)
    covariance = np.ones(size) if diagonal else np.eye(size)
    return Search(seed, population, scale, start / scale, sigma, covariance, zeros, zeros, 0, start)


def candidates(search: Search) -> Floats:
    """float64[population, coordinates]: what to try in this generation."""
    rng = np.random.default_rng([search.seed, search.generation])
    drawn = rng.standard_normal((search.population, len(search.mean)))
    if search.covariance.ndim == 1:
        steps: Floats = drawn * np.sqrt(search.covariance)
    else:
        steps = drawn @ _roots(search.covariance)[0]
    return np.round((search.mean + search.sigma * steps) * search.scale, DIGITS)


def advance(search: Search, tried: Floats, figures: Floats) -> Search:
    """The search after a generation; `figures` says how good each candidate was, more is better."""
    size, many = len(search.mean), search.population
    parents = many // 2
    weights = np.log(parents + 0.5) - np.log(np.arange(1, parents + 1))
    weights /= weights.sum()
    effective = 1 / float((weights**2).sum())
    c_sigma = (effective + 2) / (size + effective + 5)
    damping = 1 + 2 * max(0.0, float(np.sqrt((effective - 1) / (size + 1))) - 1) + c_sigma
    c_path = (4 + effective / size) / (size + 4 + 2 * effective / size)
    c_one = 2 / ((size + 1.3) ** 2 + effective)
    c_many = 2 * (effective - 2 + 1 / effective) / ((size + 2) ** 2 + effective)
    diagonal = search.covariance.ndim == 1
    if diagonal:  # so few numbers are learnt quicker
        c_one, c_many = c_one * (size + 2) / 3, c_many * (size + 2) / 3
    c_many = min(1 - c_one, c_many)
    expected = np.sqrt(size) * (1 - 1 / (4 * size) + 1 / (21 * size**2))

    best = np.argsort(-figures, kind="stable")[:parents]
    steps = (tried[best] / search.scale - search.mean) / search.sigma
    step = weights @ steps
    mean = search.mean + search.sigma * step
    white = step / np.sqrt(search.covariance) if diagonal else _roots(search.covariance)[1] @ step
    sigma_path = (1 - c_sigma) * search.sigma_path + np.sqrt(c_sigma * (2 - c_sigma) * effective) * white
    length = float(np.linalg.norm(sigma_path))
    ahead = length / np.sqrt(1 - (1 - c_sigma) ** (2 * (search.generation + 1))) < (1.4 + 2 / (size + 1)) * expected
    path = (1 - c_path) * search.path + ahead * np.sqrt(c_path * (2 - c_path) * effective) * step
    covariance = (
        (1 - c_one - c_many + (1 - ahead) * c_one * c_path * (2 - c_path)) * search.covariance
        + c_one * (path**2 if diagonal else np.outer(path, path))
        + c_many * (weights @ steps**2 if diagonal else (steps.T * weights) @ steps)
    )
    sigma = search.sigma * float(np.exp(min(1.0, c_sigma / damping * (length / expected - 1))))
    generation = search.generation + 1
    inertia = min(INERTIA, (generation - 1) / generation)  # at first a plain mean
    return search._replace(
        mean=mean,
        sigma=sigma,
        covariance=covariance if diagonal else (covariance + covariance.T) / 2,
        path=path,
        sigma_path=sigma_path,
        generation=generation,
        result=inertia * search.result + (1 - inertia) * mean * search.scale,
    )


def _roots(covariance: Floats) -> tuple[Floats, Floats]:
    """The symmetric root of a covariance, and its inverse."""
    values, vectors = np.linalg.eigh(covariance)
    lengths = np.sqrt(np.maximum(values, 1e-20))
    return (vectors * lengths) @ vectors.T, (vectors / lengths) @ vectors.T
