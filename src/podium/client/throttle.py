"""Limits the rate of one's own requests.

A bucket of `burst` tokens fills by `qps` a second, and each request takes one. Requests go in the order they came: each
reserves the next free moment and sleeps until then, so a queue needs no list and no wake-ups.
"""

import asyncio

DEFAULT_BURST = 10


class Throttle:
    """The limit of one client."""

    def __init__(self, qps: float, burst: int) -> None:
        self._interval = 1 / qps
        self._slack = ((burst if burst > 0 else DEFAULT_BURST) - 1) * self._interval
        self._next_free: float | None = None
        """When a token is free if none is saved; up to `slack` in the past, which is what was saved."""

    async def take(self, deadline: float) -> None:
        """Returns when the request may go; TimeoutError at once where that would be after `deadline` (loop time)."""
        now = asyncio.get_running_loop().time()
        oldest = now - self._slack
        free = oldest if self._next_free is None else max(self._next_free, oldest)
        if free > deadline:
            raise TimeoutError
        self._next_free = free + self._interval
        if free > now:
            await asyncio.sleep(free - now)
