"""Counts what a scheduler does, for a line in the log once a minute and a last one at the end; and failed writes."""

from __future__ import annotations

from collections.abc import Callable

from podium.client import ApiError, ClientError, missing_rule
from podium.client.problem_reports import ReportLimit
from podium.engine.queue.scheduling_queue import Pending
from podium.framework.clock import Clock
from podium.kube.printable import shortened

EVERY = 60.0
"""Seconds between two lines."""
_LONGEST_ERROR = 300
REPEAT = 60.0
"""Seconds between two reports of failures of one kind."""


class Activity:
    """Pods bound and attempts failed, since the start and since the last line."""

    def __init__(self) -> None:
        self.bound = 0
        self._unplaced = 0
        self._errors = 0
        self._last_error = ""
        self._bound_before = 0

    def attempt_failed(self, pod: str, unschedulable: bool, message: str) -> None:
        """No node takes the pod (`unschedulable`), or something broke."""
        if unschedulable:
            self._unplaced += 1
        else:
            self._errors += 1
            self._last_error = f"pod {pod}: {shortened(message, _LONGEST_ERROR)}"

    def take_line(self, waiting: Pending) -> str | None:
        """What happened since the last line; None where nothing did."""
        bound = self.bound - self._bound_before
        if not (bound or self._unplaced or self._errors):
            return None
        line = f"the last minute: pods bound {bound}, attempts without a node {self._unplaced}, failed {self._errors}"
        line += f"; waiting now: {_counts(waiting)}"
        if self._last_error:
            line += f"; the last failure: {self._last_error}"
        self._bound_before, self._unplaced, self._errors, self._last_error = self.bound, 0, 0, ""
        return line

    def last_line(self, waiting: Pending) -> str:
        return f"stopped: pods bound since the start {self.bound}; left waiting: {_counts(waiting)}"


def _counts(waiting: Pending) -> str:
    """
    >>> _counts(Pending(1, 0, 3, 0))
    '1 to be tried, 3 that fit nowhere'
    """
    kinds = {
        "to be tried": waiting.active,
        "backing off": waiting.backoff,
        "that fit nowhere": waiting.unschedulable,
        "gated": waiting.gated,
    }
    return ", ".join(f"{count} {what}" for what, count in kinds.items() if count) or "no pods"


class WriteFailures:
    """The failed writes of one process.

    Reports writes that fail: the first of a kind at once, then one a minute with the number of the others.

    When one write is refused for a lasting reason, such as a missing permission, so are all of them, many times a
    second. Failures are of one kind when the same was tried and the answer was the same, whatever the pod. Where a
    permission is missing, the report names the RBAC rule that grants it.
    """

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
