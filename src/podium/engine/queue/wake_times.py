"""Keeps the times at which unschedulable pods are to be tried again because a plugin knows that time will help them.

A pod has one such time, the earliest it was given since it was last woken by one.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator


class WakeTimes:
    """Pods, by "namespace/name", in the order of their times."""

    def __init__(self) -> None:
        self._times: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []

    def set(self, key: str, when: float) -> None:
        if when < self._times.get(key, float("inf")):
            self._times[key] = when
            heapq.heappush(self._heap, (when, key))

    def of(self, key: str) -> float | None:
        """The time of a pod."""
        return self._times.get(key)

    def first(self) -> float | None:
        """The first of the times."""
        while self._heap and self._times.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def due(self, now: float) -> Iterator[str]:
        """The pods whose time has come; they have none afterwards."""
        while (first := self.first()) is not None and first <= now:
            _when, key = heapq.heappop(self._heap)
            del self._times[key]
            yield key

    def drop(self, key: str) -> None:
        self._times.pop(key, None)
