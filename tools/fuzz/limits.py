"""Stops a reader that takes too much CPU time, even inside a regular expression."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

SLOW = 5.0
"""Seconds of CPU that one input may take."""


class SlowReaderError(Exception):
    """A reader took too long."""


@contextmanager
def cpu_limit(seconds: float = SLOW) -> Iterator[None]:
    """Raise SlowReaderError in the body once it has taken so many seconds of CPU; for the main thread."""

    def stop(_signal: int, _frame: object) -> None:
        raise SlowReaderError(f"over {seconds:g} s of CPU")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
