"""Decides when a request is sent: how many go in a second, and whether and when one that failed is sent again.

- 429 and 5xx with Retry-After: after that time, up to ten times, as kubectl does.
- No answer to a request that only reads: a few times, waiting longer each time.
- Anything else is the caller's to judge. That holds for writes that were never sent too: those who write have
  their own way of trying again, and two on top of each other would multiply.

Waits are spread at random, so that many clients that were cut off together do not come back together, and none goes
past the deadline: where it would, the error is raised at once.
"""

import asyncio
import random

from podium.client.errors import ApiError, ClientError, Unreachable

MOST_WAITS = 10
MOST_RECONNECTS = 4
FIRST_BACKOFF = 0.1
"""Seconds, doubled each time."""
SPREAD = 0.25
DEFAULT_BURST = 10


class Repetition:
    """The repetitions of one request."""

    def __init__(self, deadline: float, rng: random.Random, *, reading: bool) -> None:
        self._deadline = deadline
        self._rng = rng
        self._reading = reading
        self._waits = 0
        self._reconnects = 0

    async def after(self, error: ClientError) -> None:
        """Returns when the request may be sent again; raises `error` where it may not."""
        seconds = self._wait(error)
        if seconds is None or asyncio.get_running_loop().time() + seconds >= self._deadline:
            raise error
        await asyncio.sleep(seconds)

    def _wait(self, error: ClientError) -> float | None:
        match error:
            case ApiError(retry_after=float(seconds)) if error.too_many or error.status >= 500:
                self._waits += 1
                if self._waits <= MOST_WAITS:
                    return seconds * (1 + SPREAD * self._rng.random())
            case Unreachable(lasting=False) if self._reading:
                self._reconnects += 1
                if self._reconnects <= MOST_RECONNECTS:
                    return FIRST_BACKOFF * 2.0 ** (self._reconnects - 1) * (1 + self._rng.random())
        return None


class Throttle:
    """The limit of one client.

    Limits the rate of one's own requests.

    A bucket of `burst` tokens fills by `qps` a second, and each request takes one. Requests go in the order they
    came: each reserves the next free moment and sleeps until then, so a queue needs no list and no wake-ups.
    """

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
