"""Counts what a scheduler does, for a line in the log once a minute and a last one at the end."""

from __future__ import annotations

from podium.engine.queue.scheduling_queue import Pending
from podium.kube.printable import shortened

EVERY = 60.0
"""Seconds between two lines."""
_LONGEST_ERROR = 300


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
