"""Reads what a pod's annotations declare about its life here: how long it takes to start, how long it runs, how it ends
and what it uses. An annotation that cannot be read counts as absent and is reported once, as an event.

Values are declared or drawn: `30s`, `exp(60s)`, `uniform(10s,2m)`, `lognormal(45s,0.5)`, `normal(1m,5s)`.

What stands in the parentheses is written like the value itself: a duration, a quantity, a share in percent. `exp` takes
the mean, `uniform` both ends, `normal` mean and deviation, and `lognormal` the median and the deviation of the
logarithm. What would be drawn below zero is zero.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Mapping
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


DURATION = "podium.dev/duration"
STARTUP = "podium.dev/startup"
SHUTDOWN = "podium.dev/shutdown"
EXIT_CODE = "podium.dev/exit-code"
USAGE_CPU = "podium.dev/usage-cpu"
USAGE_MEMORY = "podium.dev/usage-memory"

DEFAULT_STARTUP = duration("uniform(500ms,1500ms)")
DEFAULT_SHUTDOWN = duration("uniform(200ms,1s)")
DEFAULT_JOB_DURATION = duration("lognormal(20s,0.5)")
DEFAULT_CPU = amount("uniform(20%,80%)")
DEFAULT_MEMORY = amount("uniform(50%,90%)")


class Declared(msgspec.Struct, frozen=True):
    startup: Drawn
    shutdown: Drawn
    duration: Drawn | None
    """None: runs until it is deleted."""
    exit_code: int
    exit_likelihood: float
    cpu: Drawn
    memory: Drawn
    complaints: tuple[str, ...] = ()

    def draw_exit_code(self, rng: random.Random) -> int:
        if self.exit_likelihood >= 1:
            return self.exit_code
        return self.exit_code if rng.random() < self.exit_likelihood else 0


def declared(annotations: Mapping[str, str], *, of_job: bool) -> Declared:
    complaints: list[str] = []

    def read(key: str, reader: Callable[[str], Drawn], default: Drawn) -> Drawn:
        try:
            return reader(annotations[key]) if key in annotations else default
        except DrawError as error:
            complaints.append(f"annotation {key}: {error}")
            return default

    lasting = DEFAULT_JOB_DURATION if of_job else None
    if DURATION in annotations:
        lasting = read(DURATION, duration, DEFAULT_JOB_DURATION)
    code, likelihood = 0, 1.0
    try:
        code, likelihood = _exit_code(annotations.get(EXIT_CODE, "0"))
    except ValueError:
        complaints.append(
            f'annotation {EXIT_CODE}: "{annotations[EXIT_CODE]}" cannot be read; '
            'write a number such as "1", or "1@0.2" for a likelihood of 20 %'
        )
    return Declared(
        startup=read(STARTUP, duration, DEFAULT_STARTUP),
        shutdown=read(SHUTDOWN, duration, DEFAULT_SHUTDOWN),
        duration=lasting,
        exit_code=code,
        exit_likelihood=likelihood,
        cpu=read(USAGE_CPU, amount, DEFAULT_CPU),
        memory=read(USAGE_MEMORY, amount, DEFAULT_MEMORY),
        complaints=tuple(complaints),
    )


def _exit_code(text: str) -> tuple[int, float]:
    code, at, likelihood = text.partition("@")
    number, share = int(code), float(likelihood) if at else 1.0
    if not 0 <= number <= 255 or not 0 <= share <= 1:
        raise ValueError
    return number, share
