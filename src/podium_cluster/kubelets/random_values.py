"""Parses declared or drawn values: `30s`, `exp(60s)`, `uniform(10s,2m)`, `lognormal(45s,0.5)`, `normal(1m,5s)`.

What stands in the parentheses is written like the value itself: a duration, a quantity, a share in percent. `exp` takes
the mean, `uniform` both ends, `normal` mean and deviation, and `lognormal` the median and the deviation of the
logarithm. What would be drawn below zero is zero.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from functools import lru_cache

import msgspec

from kubecel.quantity import NANO, parse
from podium.config.durations import Duration

_CALL = re.compile(r"\s*([a-z]+)\(([^()]*)\)\s*")
_ARGUMENTS = {"exp": 1, "uniform": 2, "normal": 2, "lognormal": 2}


class DrawError(ValueError):
    """A value that cannot be read; the text says what to write instead."""


class Drawn(msgspec.Struct, frozen=True):
    """A value or a distribution of values; with `share` they are parts of a request, 1 being all of it."""

    name: str
    arguments: tuple[float, ...]
    share: bool = False

    def draw(self, rng: random.Random) -> float:
        first, second = self.arguments[0], self.arguments[-1]
        match self.name:
            case "exp":
                value = -first * math.log(1.0 - rng.random())
            case "uniform":
                value = first + (second - first) * rng.random()
            case "normal":
                value = rng.gauss(first, second)
            case "lognormal":
                value = first * math.exp(rng.gauss(0.0, second))
            case _:
                return first
        return max(0.0, value)


@lru_cache(maxsize=1024)
def duration(text: str) -> Drawn:
    """Seconds."""
    instead = 'a duration such as "30s", "1m30s", "exp(60s)" or "uniform(10s,2m)"'
    name, arguments = _read(text, _seconds, instead)
    return Drawn(name, arguments)


@lru_cache(maxsize=1024)
def amount(text: str) -> Drawn:
    """Units of a resource, or a share of the request."""
    instead = 'a quantity or a share of the request such as "250m", "60%" or "uniform(20%,90%)"'
    if "%" not in text:
        name, arguments = _read(text, lambda each: parse(each) / NANO, instead)
        return Drawn(name, arguments)
    name, arguments = _read(text, _share, instead)
    return Drawn(name, arguments, share=True)


def _read(text: str, value: Callable[[str], float], instead: str) -> tuple[str, tuple[float, ...]]:
    try:
        call = _CALL.fullmatch(text)
        name, arguments = (call[1], call[2].split(",")) if call is not None else ("", [text])
        if call is not None and len(arguments) != _ARGUMENTS.get(name, -1):
            raise ValueError
        plain = len(arguments) - (name == "lognormal")  # the deviation of a logarithm has no unit
        numbers = [value(each.strip()) for each in arguments[:plain]] + [float(each) for each in arguments[plain:]]
        if any(not 0 <= number < math.inf for number in numbers):
            raise ValueError
    except ValueError:
        raise DrawError(f'"{text}" cannot be read; write {instead}') from None
    return name, tuple(numbers)


def _seconds(text: str) -> float:
    return Duration.parse(text).seconds


def _share(text: str) -> float:
    if not text.endswith("%"):
        raise ValueError
    return float(text[:-1]) / 100
