"""Decides when pods are flushed that nothing has woken: a hint may have missed something.

kube-scheduler looks every thirty seconds for pods that have been unschedulable for more than five minutes
(`--pod-max-in-unschedulable-pods-duration`) and gives them another chance.
"""

from __future__ import annotations

import math

FLUSH_EVERY = 30.0
"""Seconds between looks for such pods."""


class UnschedulableFlush:
    """The times at which unschedulable pods are looked through."""

    def __init__(self, now: float, longest: float) -> None:
        self.longest = longest
        self._due = now + FLUSH_EVERY

    def last_due(self, now: float) -> float | None:
        """The last look that is due by now, which counts as done; None when none is.

        A scheduler that is late for several looks makes one: what counts is who had waited too long at the last.
        """
        periods = math.floor((now - self._due) / FLUSH_EVERY)
        if periods < 0:
            return None
        last = self._due + periods * FLUSH_EVERY
        self._due = last + FLUSH_EVERY
        return last

    def first_that_flushes(self, waiting_since: float) -> float:
        """The first look that finds a pod to have waited too long."""
        late = waiting_since + self.longest - self._due
        return self._due + FLUSH_EVERY * max(0, math.floor(late / FLUSH_EVERY) + 1)
