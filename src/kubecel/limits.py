"""Goes on with work that nests deep on the stack of another thread.

kube-apiserver takes expressions that nest 250 deep in the text, and what macros make of one nests five times deeper;
its values and types can nest deeper still. Python ends at 1,000 calls within calls, those of the caller included, but
counts them for each thread. So work that walks down a tree asks, at each step, whether half of that is used, and goes
on in a new thread while this one waits: no limit is changed, and nothing depends on how deep the caller was already.

Also ends checks that take too long, from inside: what may run long looks at the time now and then.

with time_limit(0.5):
    …  # calls look_at_the_time() at each step; TookTooLongError once the time is over

Without a limit, looking costs next to nothing and nothing ends. The limit holds on fresh stacks too (cel/stack.py).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from threading import Thread
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_T = TypeVar("_T")


def is_nearly_used() -> bool:
    """Whether half of the calls that may be open at once are."""
    try:
        sys._getframe(sys.getrecursionlimit() // 2)
    except ValueError:
        return False
    return True


def on_fresh_stack(work: Callable[_P, _T], *args: _P.args, **keywords: _P.kwargs) -> _T:
    """What the work returns or raises, done in a thread of its own."""
    outcome: list[_T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            outcome.append(work(*args, **keywords))
        except BaseException as error:  # whatever the work raises is raised again where it is waited for
            errors.append(error)

    thread = Thread(target=copy_context().run, args=(run,), name="deep", daemon=True)
    thread.start()
    thread.join()
    if errors:
        raise errors.pop()
    return outcome[0]


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
