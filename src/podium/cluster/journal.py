"""Which rows changed, in order, so that kept answers can be brought up to date row by row.

A reader remembers the position up to which it has read. The journal is cut when it grows long; a reader whose position
was cut away must start afresh.
"""

from __future__ import annotations

LIMIT = 100_000


class Journal:
    def __init__(self) -> None:
        self._rows: list[int] = []
        self._start = 0

    @property
    def end(self) -> int:
        return self._start + len(self._rows)

    def append(self, row: int) -> None:
        self._rows.append(row)
        if len(self._rows) > LIMIT:
            cut = LIMIT // 2
            del self._rows[:cut]
            self._start += cut

    def since(self, position: int) -> list[int] | None:
        """The rows changed since a position, repeats included; None when that far back is no longer known."""
        if position < self._start:
            return None
        return self._rows[position - self._start :]

    def mark(self) -> int:
        return self.end

    def rewind(self, mark: int) -> None:
        """Drop what was written since `mark`: it was undone."""
        if mark >= self._start:
            del self._rows[mark - self._start :]
