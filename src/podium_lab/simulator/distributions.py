"""Draws the amounts of a scenario that vary: times in seconds, resources in Kubernetes quantities, plain numbers.

A sampler draws many numbers at once and hands them out one by one, because a generator call costs more than the rest
of what a generated pod needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from kubecel.quantity import NANO, QuantityError, parse
from podium.config.durations import Duration
from podium.kube.meta import Amount
from podium_lab.simulator.scenario import Distribution, Varying

TOGETHER = 512
"""Numbers drawn at a time."""

LARGEST = float(2**53)
"""The largest amount: eight pebibytes, or as many seconds; beyond it sums would no longer be exact."""
LARGEST_SPREAD = 10.0
"""The largest deviation of a logarithm: beyond it a draw may be larger than any amount."""

Draw = Callable[[], float]
Floats = NDArray[np.float64]


class DistributionError(ValueError):
    """An amount that cannot be read; the text says what was expected."""


def is_duration(amount: Amount) -> float:
    """Seconds of "5m" or of a plain number of seconds."""
    if isinstance(amount, (int, float)):
        if not (math.isfinite(amount) and amount >= 0):
            raise DistributionError(f"expected a time of 0 or more, got {amount}")
        return _bounded(float(amount), amount)
    try:
        length = Duration.parse(amount).seconds
    except ValueError:
        raise DistributionError(f'expected a duration such as "90s" or "5m", got "{amount}"') from None
    if length < 0:
        raise DistributionError(f"expected a time of 0 or more, got {amount}")
    return length


def is_quantity(amount: Amount) -> float:
    """Units of "500m", "1Gi" or a plain number."""
    try:
        if isinstance(amount, float) and not math.isfinite(amount):
            raise QuantityError
        number = parse(amount) / NANO
    except QuantityError:
        raise DistributionError(f'expected a quantity such as "500m" or "1Gi", got "{amount}"') from None
    if number < 0:
        raise DistributionError(f"expected an amount of 0 or more, got {amount}")
    return _bounded(number, amount)


def _bounded(number: float, amount: Amount) -> float:
    if number > LARGEST:
        raise DistributionError(f"expected an amount of at most {LARGEST:.0f}, got {str(amount)[:40]}")
    return number


def sampler(varying: Varying, rng: np.random.Generator, *, time: bool = False) -> Draw:
    """Something that draws the amount each time it is called; a constant draws nothing."""
    read = is_duration if time else is_quantity
    if not isinstance(varying, Distribution):
        constant = read(varying)
        return repeat(constant).__next__
    return one_by_one(_many(varying, rng, read))


def one_by_one(draw_many: Callable[[int], Floats]) -> Draw:
    """Hand out numbers singly that are drawn together."""

    def endless() -> Iterator[float]:
        while True:
            yield from np.minimum(draw_many(TOGETHER), LARGEST).tolist()

    return endless().__next__


def _many(kind: Distribution, rng: np.random.Generator, read: Callable[[Amount], float]) -> Callable[[int], Floats]:
    if kind.uniform is not None:
        low, high = map(read, kind.uniform)
        return lambda n: rng.uniform(low, high, n)
    if kind.exponential is not None:
        mean = read(kind.exponential)
        return lambda n: rng.exponential(mean, n)
    if kind.normal is not None:
        middle, deviation = map(read, kind.normal)
        return lambda n: np.maximum(rng.normal(middle, deviation, n), 0.0)
    if kind.lognormal is not None:
        median, sigma = read(kind.lognormal[0]), kind.lognormal[1]
        return lambda n: median * np.exp(rng.normal(0.0, sigma, n))
    assert kind.choice is not None, "exactly one distribution is set"
    amounts = np.array([read(each) for each in kind.choice])
    weights = np.array(list(kind.choice.values()))
    return lambda n: rng.choice(amounts, n, p=weights / weights.sum())


_PURPOSES = (
    "order",
    "arrivals",
    "lifetimes",
    "shapes",
    "usage",
    "faults",
    "delays",
    "rewards",
    "connections",
    "latencies",
    "scrapes",
)


def generator(seed: int, purpose: str) -> np.random.Generator:
    """A generator of random numbers for one purpose: what is drawn for another does not move them."""
    return np.random.default_rng([seed, _PURPOSES.index(purpose)])
