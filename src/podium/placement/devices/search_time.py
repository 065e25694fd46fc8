"""Measures how long finding devices for one pod takes, and says when it has taken too long.

A search on one node may take so many seconds, as in kube-scheduler, where the first node that takes longer fails the
attempt. Searches that are not short also count together: all of them may take as many seconds again and no more, for
while they run nothing else is decided.
"""

from __future__ import annotations

from collections.abc import Callable

SHORT = 0.1
"""Seconds that a search may take in any case; one that takes no longer does not count for the others."""

Expired = Callable[[], bool]


class SearchTime:
    """The time that the searches of one attempt take; 0 seconds are no limit."""

    def __init__(self, now: Callable[[], float], seconds: float) -> None:
        self._now = now
        self._seconds = seconds
        self._spent = 0.0
        self._began: float | None = None

    def begin(self) -> Expired:
        """Begin the next search; the answer says whether its time is over."""
        now, read = self._now(), self._now
        if self._seconds <= 0:
            return lambda: False
        if self._began is not None and now - self._began > SHORT:
            self._spent += now - self._began
        self._began = now
        end = now + max(SHORT, self._seconds - self._spent)
        return lambda: read() > end
