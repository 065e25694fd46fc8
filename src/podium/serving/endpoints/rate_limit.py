"""Limits a rate without waiting: what comes too often is refused.

`burst` may come at once; after that, `rate` a second.
"""

from __future__ import annotations

import asyncio


class RateLimit:
    """One limit, on the event loop's time."""

    def __init__(self, rate: float, burst: int) -> None:
        self._rate = rate
        self._burst = burst
        self._free = float(burst)
        self._as_of: float | None = None

    def allows(self) -> bool:
        """Whether one more may come now; it counts as come then."""
        now = asyncio.get_running_loop().time()
        if self._as_of is not None:
            self._free = min(self._burst, self._free + (now - self._as_of) * self._rate)
        self._as_of = now
        if self._free < 1:
            return False
        self._free -= 1
        return True
