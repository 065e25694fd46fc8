"""Goes on with work that nests deep on the stack of another thread.

kube-apiserver takes expressions that nest 250 deep in the text, and what macros make of one nests five times deeper;
its values and types can nest deeper still. Python ends at 1,000 calls within calls, those of the caller included, but
counts them for each thread. So work that walks down a tree asks, at each step, whether half of that is used, and goes
on in a new thread while this one waits: no limit is changed, and nothing depends on how deep the caller was already.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextvars import copy_context
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
