"""Reports what is wrong right now, without flooding: a server that is away for an hour is one line, not ten thousand.

A problem is reported when it begins, when it changes and when it ends, and while it lasts every half minute at most.
The same holds for single incidents.
"""

import asyncio
from collections.abc import Callable

from podium.framework.report_limit import ReportLimit

REPEAT = 30.0
"""Seconds between two reports of the same."""


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


def _now() -> float:
    return asyncio.get_running_loop().time()
