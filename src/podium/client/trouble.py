"""What is wrong right now, told without flooding: a server that is away for an hour is one line, not ten thousand.

A trouble is reported when it begins, when it changes and when it ends, and while it lasts again every half minute at
most. The same holds for single mishaps: a sentence that was said is not said again for a while.
"""

import asyncio
from collections.abc import Callable

REPEAT = 30.0
_REMEMBERED = 256


class Trouble:
    """`sentence` is the trouble there is, or None."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self.sentence: str | None = None
        self._report = report
        self._told = False
        self._said: dict[str, float] = {}

    def is_that(self, sentence: str) -> None:
        self.sentence = sentence
        self._told = self.mention(sentence) or self._told

    def is_over(self, sentence: str) -> None:
        """All is well; `sentence` says so if the trouble was told."""
        if self.sentence is None:
            return
        self.sentence = None
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
