"""What is wrong right now, told without flooding: a server that is away for an hour is one line, not ten thousand.

A trouble is reported when it begins, when it changes and when it ends, and while it lasts again every half minute at
most. The same holds for single mishaps: a sentence that was said is not said again for a while.
"""

import asyncio
from collections.abc import Callable

REPEAT = 30.0
_REMEMBERED = 256


class Reports:
    """`trouble` is what is wrong now, or None."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self.trouble: str | None = None
        self._report = report
        self._told = False
        self._said: dict[str, float] = {}

    def trouble_is(self, sentence: str) -> None:
        self.trouble = sentence
        self._told = self.mention(sentence) or self._told

    def all_is_well(self, sentence: str) -> None:
        """Whatever was wrong is over; `sentence` says so, if that had been reported."""
        if self.trouble is None:
            return
        self.trouble = None
        if self._told:
            self._told = False
            self._report(sentence)

    def mention(self, sentence: str, *, topic: str | None = None) -> bool:
        """Report it unless it, or another sentence on the same topic, was reported just before; whether it was."""
        now = asyncio.get_running_loop().time()
        topic = topic or sentence
        if now - self._said.get(topic, float("-inf")) < REPEAT:
            return False
        self._said.pop(topic, None)
        self._said[topic] = now
        if len(self._said) > _REMEMBERED:
            del self._said[next(iter(self._said))]
        self._report(sentence)
        return True
