"""Reports exceptions that the answer cache did not expect.

The decision is then made without the cache, so that a mistake in it costs time and not a pod. It must not stay unseen:
every such exception is counted, and the first one of each place in the code is reported with its traceback. Tests
switch `strict` on, under which it is raised.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import ClassVar

MOST_SOURCES = 100


class UnexpectedErrors:
    """How many there were, and in which places of the code."""

    strict: ClassVar[bool] = False
    """Whether an unexpected exception is raised instead of reported."""

    def __init__(self) -> None:
        self.count = 0
        self._sources: set[tuple[str, int]] = set()

    def add(self, error: Exception, report: Callable[[str], None]) -> None:
        """Count an exception, and report it where it is the first of its place; to be called in its handler."""
        if self.strict:
            raise error
        self.count += 1
        last = traceback.extract_tb(error.__traceback__)[-1]
        source = last.filename, last.lineno or 0
        if source not in self._sources and len(self._sources) < MOST_SOURCES:
            self._sources.add(source)
            lines = "".join(traceback.format_exception(error)).rstrip()
            what = f"answer cache: unexpected {type(error).__name__}; pods are decided without it, more slowly"
            report(f"{what}:\n{lines}")
