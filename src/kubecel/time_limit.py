"""Ends checks that take too long, from inside: what may run long looks at the time now and then.

with time_limit(0.5):
    …  # calls look_at_the_time() at each step; TookTooLongError once the time is over

Without a limit, looking costs next to nothing and nothing ends. The limit holds on fresh stacks too (cel/stack.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class TookTooLongError(Exception):
    """The time of a check is over. No rule of any language absorbs it."""


def _endless() -> bool:
    return False


_is_over: ContextVar[Callable[[], bool]] = ContextVar("is_over", default=_endless)


@contextmanager
def time_limit(seconds: float, stopped: Callable[[], bool] = _endless) -> Iterator[None]:
    """End what looks at the time within when so much of it has passed, or when it is `stopped`."""
    end = time.monotonic() + seconds
    token = _is_over.set(lambda: time.monotonic() > end or stopped())
    try:
        yield
    finally:
        _is_over.reset(token)


def look_at_the_time() -> None:
    """Raise TookTooLongError where the time is over."""
    if _is_over.get()():
        raise TookTooLongError("the check took too long")
