"""Gives the time. Nothing in Podium asks the operating system directly, so that a simulation, a test or a replay
decides exactly as the live scheduler would have."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Says what time it is; tests and simulations move it."""

    def now(self) -> float:
        """Seconds since the epoch."""


class SystemClock:
    def now(self) -> float:
        return time.time()


class ManualClock:
    """Time that moves only by `advance`: for simulations and tests."""

    def __init__(self, start: float = 0.0) -> None:
        self._now = start

    def now(self) -> float:
        return self._now

    def advance(self, seconds: float) -> None:
        if seconds < 0:
            raise ValueError(f"time cannot go back by {-seconds} s")
        self._now += seconds
