"""Reads a pod's latency limits from its annotations."""

from __future__ import annotations

import math
from collections.abc import Mapping

SOFT = ("podium.dev/latency-soft", "latencySoftConstraint")
HARD = ("podium.dev/latency-hard", "latencyHardConstraint")


def latency_limits(annotations: Mapping[str, str]) -> tuple[float, float]:
    """Soft and hard limit in milliseconds; NaN where there is none."""
    return _first(annotations, SOFT), _first(annotations, HARD)


def _first(annotations: Mapping[str, str], names: tuple[str, ...]) -> float:
    for name in names:
        try:
            found = float(annotations.get(name, "").removesuffix("ms"))
        except ValueError:
            continue
        if math.isfinite(found) and found > 0:
            return found
    return math.nan
