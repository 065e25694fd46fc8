"""Writes that fail, told to whoever reads the log: at once, and then not ten thousand times.

When one write of a kind is refused for a lasting reason, such as a missing permission, so are all of them, many times
a second. The first of a kind is told, with the RBAC rule that is missing if that is the reason; more of the same kind
are counted, and the next one told is that of a minute later, with their number.
"""

from __future__ import annotations

from collections.abc import Callable

from podium.client import ApiError, ClientError, missing_rule
from podium.framework.clock import Clock

SILENCE = 60.0
"""Seconds between two lines about failures of one kind."""


class Complaints:
    """Failures are of one kind when the same was tried and the answer was the same, whatever the pod."""

    def __init__(self, clock: Clock, report: Callable[[str], None]) -> None:
        self._clock = clock
        self._report = report
        self._told: dict[tuple[str, object], float] = {}
        self._untold: dict[tuple[str, object], int] = {}

    def failed(self, trying: str, pod_key: str, error: ClientError) -> None:
        """`trying` to do something, such as "binding", about a pod failed."""
        kind = (trying, error.status if isinstance(error, ApiError) else type(error))
        now = self._clock.now()
        if now - self._told.get(kind, -SILENCE) < SILENCE:
            self._untold[kind] = self._untold.get(kind, 0) + 1
            return
        self._told[kind] = now
        sentence = f"{trying} pod {pod_key} failed: {error}"
        if isinstance(error, ApiError) and (rule := missing_rule(error)):
            sentence += f"; the role of this user needs the rule {rule}"
        if more := self._untold.pop(kind, 0):
            sentence += f" (and {more} more of this kind since the last line about it)"
        self._report(sentence)
