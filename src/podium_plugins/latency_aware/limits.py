"""Reads the latency limits of a pod from its annotations.

    podium.dev/latency-soft: 35ms      what the pod would like
    podium.dev/latency-hard: 100ms     what it can't do with more of

A value is a decimal number of milliseconds, or has one of the units us, ms and s. `latencySoftConstraint` and
`latencyHardConstraint`, milliseconds without a unit, count where ours are missing. A soft limit above the hard one
counts as equal to it. A value that can't be read, or isn't above 0, counts as missing, and `problem` says so.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Final, NamedTuple

SOFT: Final = "podium.dev/latency-soft"
HARD: Final = "podium.dev/latency-hard"
ORIGINAL_SOFT: Final = "latencySoftConstraint"
ORIGINAL_HARD: Final = "latencyHardConstraint"
_VALUE: Final = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*(us|ms|s)?")
_MILLISECONDS: Final = {"us": 0.001, "ms": 1.0, "s": 1000.0, None: 1.0}
MOST_SHOWN: Final = 60


class LatencyLimits(NamedTuple):
    """Milliseconds; NaN where there is no such limit."""

    soft: float = math.nan
    hard: float = math.nan
    problem: str = ""
    """What is wrong with the annotations; empty: nothing."""

    @property
    def any(self) -> bool:
        return not (math.isnan(self.soft) and math.isnan(self.hard))


NO_LIMITS: Final = LatencyLimits()


def limits_of(annotations: Mapping[str, str]) -> LatencyLimits:
    """The limits of a pod.

    >>> limits_of({"podium.dev/latency-soft": "35ms", "latencyHardConstraint": "100"})
    LatencyLimits(soft=35.0, hard=100.0, problem='')
    """
    if not annotations:
        return NO_LIMITS
    soft, soft_problem = _read(annotations, SOFT, ORIGINAL_SOFT)
    hard, hard_problem = _read(annotations, HARD, ORIGINAL_HARD)
    # `min` gives its first argument where either is NaN.
    return LatencyLimits(min(soft, hard), hard, soft_problem or hard_problem)


def _read(annotations: Mapping[str, str], *names: str) -> tuple[float, str]:
    name = next((each for each in names if each in annotations), None)
    if name is None:
        return math.nan, ""
    text = annotations[name].strip()
    found = _VALUE.fullmatch(text) if len(text) <= MOST_SHOWN else None
    number = math.nan if found is None else float(found[1]) * _MILLISECONDS[found[2]]
    if not (math.isfinite(number) and number > 0):
        shown = text[:MOST_SHOWN]
        return math.nan, f'the annotation {name} is {shown!r}, and must be a time such as "35ms"; it does not count'
    return number, ""
