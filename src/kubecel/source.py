"""Finds lines and columns in the text of an expression, and writes errors the way cel-go shows them.

    ERROR: <input>:1:1: undeclared reference to 'devce' (in container '')
     | devce.driver == "x"
     | ^

Offsets count code points. A caret under a character that takes more than one byte is a wide one, as cel-go draws it.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Final, NamedTuple

_MOST_ERRORS: Final = 100
_LONGEST_SNIPPET: Final = 16384
NOWHERE: Final = -1
"""The offset of errors that belong to no place in the text."""
MISSING: Final = -2
"""The offset of a part that is not there; its errors point before the first line."""


class ExpressionProblem(NamedTuple):
    """What is wrong with an expression, and where."""

    offset: int
    message: str


class SourceText:
    """The text of an expression, in lines."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.problems: list[ExpressionProblem] = []
        self._left_out = 0
        self.unread: list[tuple[int, int]] = []
        self._starts = [0, *(at + 1 for at, character in enumerate(text) if character == "\n")]

    def report(self, offset: int, message: str) -> None:
        """Note a problem; of very many, those that are found first are kept, wherever they are."""
        if len(self.problems) < _MOST_ERRORS:
            self.problems.append(ExpressionProblem(offset, message))
        else:
            self._left_out += 1

    def read_between(self, start: int, end: int) -> str:
        """The text between two offsets, without what was no token."""
        parts, at = [], start
        for first, last in self.unread:
            if start <= first < end:
                parts.append(self.text[at:first])
                at = last
        return "".join([*parts, self.text[at:end]])

    def location(self, offset: int) -> tuple[int, int]:
        """Line, from one on, and column, from zero on."""
        if offset == NOWHERE:
            return -1, -1
        if offset == MISSING:
            return 1, -1
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1]

    def display(self) -> str:
        """All problems, in the order of their places."""
        ordered = sorted(self.problems, key=lambda problem: self.location(problem.offset))
        shown = [self._display(problem) for problem in ordered]
        if self._left_out:
            shown.append(f"{self._left_out} more errors were truncated")
        return "\n".join(shown)

    def _display(self, problem: ExpressionProblem) -> str:
        line, column = self.location(problem.offset)
        shown = f"ERROR: <input>:{line}:{column + 1}: {problem.message}"
        snippet = self._snippet(line)
        if snippet is None or len(snippet.encode(errors="replace")) > _LONGEST_SNIPPET:
            return shown
        snippet = snippet.replace("\t", " ")
        before = "".join("." if character < "\x80" else "．" for character in snippet[: max(column, 0)])
        wide = snippet[max(column, 0) :][:1] >= "\x80"
        return f"{shown}\n | {snippet}\n | {before}{'＾' if wide else '^'}"

    def _snippet(self, line: int) -> str | None:
        if line < 1 or not self.text or line > len(self._starts):
            return None
        start = self._starts[line - 1]
        end = self._starts[line] - 1 if line < len(self._starts) else len(self.text)
        return self.text[start:end]
