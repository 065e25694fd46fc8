"""Decides whether a request that failed is sent again, and when.

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
