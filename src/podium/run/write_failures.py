"""Reports writes that fail: the first of a kind at once, then one a minute with the number of the others.

When one write is refused for a lasting reason, such as a missing permission, so are all of them, many times a second.
Failures are of one kind when the same was tried and the answer was the same, whatever the pod. Where a permission is
missing, the report names the RBAC rule that grants it.
"""

from __future__ import annotations

from collections.abc import Callable

from podium.client import ApiError, ClientError, missing_rule
from podium.framework.clock import Clock
from podium.framework.report_limit import ReportLimit

REPEAT = 60.0
"""Seconds between two reports of failures of one kind."""


class WriteFailures:
    """The failed writes of one process."""

    def __init__(self, clock: Clock, report: Callable[[str], None]) -> None:
        self._report = report
        self._limit = ReportLimit(REPEAT, clock.now)

    def failed(self, trying: str, pod_key: str, error: ClientError) -> None:
        """`trying` to do something, such as "binding", about a pod failed."""
        kind = (trying, error.status if isinstance(error, ApiError) else type(error))
        if not self._limit.due(kind):
            return
        sentence = f"{trying} pod {pod_key} failed: {error}"
        if isinstance(error, ApiError) and (rule := missing_rule(error)):
            sentence += f"; the role of this user needs the rule {rule}"
        if more := self._limit.take_skipped(kind):
            sentence += f" (and {more} more of this kind since the last line about it)"
        self._report(sentence)
