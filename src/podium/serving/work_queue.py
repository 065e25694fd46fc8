"""Queues the keys that controllers have yet to look at, in the order in which they came, each at most once, some later.

A key that fails comes back after 5 ms, then 10, 20 … up to 1,000 s, until it succeeds. Time is the loop's, and nothing
here depends on anything else, so on a loop in virtual time the order of work is the same on every run.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from typing import Generic, TypeVar

FIRST_RETRY = 0.005
LAST_RETRY = 1000.0

K = TypeVar("K")


class WorkQueue(Generic[K]):
    def __init__(self) -> None:
        self._ready: deque[K] = deque()
        self._waiting: set[K] = set()
        self._due: dict[K, float] = {}
        self._later: list[tuple[float, int, K]] = []
        self._number = 0
        self._failures: dict[K, int] = {}
        self._wakeup = asyncio.Event()

    def __len__(self) -> int:
        return len(self._ready) + len(self._due)

    def add(self, key: K) -> None:
        if key not in self._waiting:
            self._waiting.add(key)
            self._ready.append(key)
            self._wakeup.set()

    def add_after(self, key: K, seconds: float) -> None:
        """Adds the key when that time has passed; of two times for one key the earlier counts."""
        if seconds <= 0:
            self.add(key)
            return
        due = asyncio.get_running_loop().time() + seconds
        if key in self._waiting or self._due.get(key, due + 1) <= due:
            return
        self._due[key] = due
        self._number += 1
        heapq.heappush(self._later, (due, self._number, key))
        self._wakeup.set()

    def retry(self, key: K) -> None:
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        self.add_after(key, min(LAST_RETRY, FIRST_RETRY * 2.0 ** min(failures, 30)))

    def succeeded(self, key: K) -> None:
        self._failures.pop(key, None)

    async def get(self) -> K:
        """The next key, as soon as there is one."""
        loop = asyncio.get_running_loop()
        while True:
            self._take_due(loop.time())
            if self._ready:
                key = self._ready.popleft()
                self._waiting.discard(key)
                return key
            self._wakeup.clear()
            timer = loop.call_at(self._later[0][0], self._wakeup.set) if self._later else None
            try:
                await self._wakeup.wait()
            finally:
                if timer is not None:
                    timer.cancel()

    def _take_due(self, now: float) -> None:
        while self._later and self._later[0][0] <= now:
            due, _, key = heapq.heappop(self._later)
            if self._due.get(key) == due:
                del self._due[key]
                self.add(key)
