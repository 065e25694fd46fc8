"""Reports what is wrong right now, without flooding: a server that is away for an hour is one line, not ten thousand.

A problem is reported when it begins, when it changes and when it ends, and while it lasts every half minute at most.
The same holds for single incidents.

Also limits how often the same thing is reported, for every log line that a fault could repeat a thousand times a
second.

The first report on a topic is due at once, and the next when `interval` seconds have passed; those in between are
counted. What makes two reports one topic is the caller's to say.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable

REPEAT = 30.0
"""Seconds between two reports of the same."""
MOST_TOPICS = 256
"""Topics that are known at a time; the one reported longest ago goes first."""


class ProblemReports:
    """The reports of one part of the process. `problem` is what is wrong now, or None."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self.problem: str | None = None
        self._report = report
        self._reported = False
        self._limit = ReportLimit(REPEAT, _now)

    def begin(self, problem: str) -> None:
        """Something is wrong from now on, or still."""
        self.problem = problem
        self._reported = self.mention(problem) or self._reported

    def note(self, problem: str) -> None:
        """The same where another reports it."""
        self.problem = problem

    def end(self, sentence: str) -> None:
        """Nothing is wrong any more; `sentence` says so, if the problem had been reported."""
        if self.problem is None:
            return
        self.problem = None
        if self._reported:
            self._reported = False
            self._report(sentence)

    def mention(self, sentence: str, *, topic: str | None = None) -> bool:
        """Report it unless it, or another sentence on the same topic, was reported just before; whether it was."""
        if not self._limit.due(topic or sentence):
            return False
        self._report(sentence)
        return True


class SharedOutage:
    """A server that several parts of the process cannot reach: reported once for all of them."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._reports = ProblemReports(report)
        self._cut_off: set[str] = set()

    def begin(self, part: str, reason: str) -> None:
        self._cut_off.add(part)
        self._reports.begin(f"the API server cannot be reached: {reason}")

    def end(self, part: str) -> None:
        """A part is served again; the outage is over with the last of them."""
        self._cut_off.discard(part)
        if not self._cut_off:
            self._reports.end("the API server can be reached again")


def _now() -> float:
    return asyncio.get_running_loop().time()


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
