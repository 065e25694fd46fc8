"""Keeps what is still to happen, by virtual time, and tells the engine what time it is."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

EPOCH = 1_767_225_600.0
"""Virtual time 0, in seconds since the epoch: 2026-01-01."""

ROUNDING = 5e-7
"""Twice what separates two neighbouring numbers of that size."""

NEVER = float("inf")
Act = Callable[[Any], None]


class SimulatedClock:
    """A clock that stands still until it is set."""

    __slots__ = ("time",)

    def __init__(self) -> None:
        self.time = 0.0
        """Virtual seconds since the run began."""

    def now(self) -> float:
        return EPOCH + self.time

    @staticmethod
    def reaching(moment: float) -> float:
        """The first virtual time at which `now` is not before a moment, whatever is lost in the digits."""
        time = moment - EPOCH
        return time if EPOCH + time >= moment else time + ROUNDING


class EventTimeline:
    """Acts to come. Of those due at the same time, the first to be planned is the first to happen."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, bool, Act, Any]] = []
        self._sequence = 0
        self.next_time = NEVER
        self.awaited = 0
        """Acts that something may depend on; those of the background (measuring, recurring faults) go on for ever."""

    def plan(self, at: float, act: Act, argument: Any = None, *, background: bool = False) -> None:
        self._sequence += 1
        self.awaited += not background
        self.next_time = min(self.next_time, at)
        heapq.heappush(self._heap, (at, self._sequence, background, act, argument))

    def happen(self, now: float) -> None:
        """Do everything that is due."""
        heap = self._heap
        while heap and heap[0][0] <= now:
            _, _, background, act, argument = heapq.heappop(heap)
            self.awaited -= not background
            self.next_time = heap[0][0] if heap else NEVER
            act(argument)
