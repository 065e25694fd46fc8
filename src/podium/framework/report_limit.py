"""Limits how often the same thing is reported, for every log line that a fault could repeat a thousand times a second.

The first report on a topic is due at once, and the next when `interval` seconds have passed; those in between are
counted. What makes two reports one topic is the caller's to say.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

MOST_TOPICS = 256
"""Topics that are known at a time; the one reported longest ago goes first."""


class ReportLimit:
    """The topics reported lately. `now` is any clock in seconds that goes forward."""

    def __init__(self, interval: float, now: Callable[[], float]) -> None:
        self._interval = interval
        self._now = now
        self._reported: dict[Hashable, float] = {}
        self._skipped: dict[Hashable, int] = {}

    def due(self, topic: Hashable) -> bool:
        """Whether a report on the topic is due now; it counts as made then, and else as skipped."""
        now, last = self._now(), self._reported.pop(topic, None)
        if last is not None and now - last < self._interval:
            self._reported[topic] = last
            self._skipped[topic] = self._skipped.get(topic, 0) + 1
            return False
        self._reported[topic] = now
        if len(self._reported) > MOST_TOPICS:
            oldest = min(self._reported, key=self._reported.__getitem__)
            del self._reported[oldest]
            self._skipped.pop(oldest, None)
        return True

    def take_skipped(self, topic: Hashable) -> int:
        """How many reports on the topic were skipped since this was last asked."""
        return self._skipped.pop(topic, 0)
