"""Decides how long to wait before a server that does not answer is asked again, as client-go's reflector does.

The n-th wait in a row is first × 2ⁿ, at most `longest`, stretched by up to as much again at random, so that clients
which lost the server together do not come back together. Without a wait for `healthy` seconds the next one starts over.
"""

import random


class Backoff:
    """The waits of one client of one server."""

    def __init__(
        self, rng: random.Random, *, first: float = 0.8, longest: float = 30.0, healthy: float = 120.0
    ) -> None:
        self._rng = rng
        self._first = first
        self._longest = longest
        self._healthy = healthy
        self._next = first
        self._last_wait = float("-inf")

    def delay(self, now: float) -> float:
        """Seconds to wait from `now` on; `now` is any clock that goes forward, always the same one."""
        if now - self._last_wait > self._healthy:
            self._next = self._first
        self._last_wait = now
        delay = self._next
        self._next = min(self._next * 2, self._longest)
        return delay * (1 + self._rng.random())
