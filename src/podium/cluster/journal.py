"""What changed, in order (rows, or names of nodes), so that kept answers can be brought up to date piece by piece.

A reader remembers the position up to which it has read. The journal is cut when it grows long; a reader whose position
was cut away must start afresh.
"""

from __future__ import annotations

from typing import Generic, TypeVar

LIMIT = 100_000

T = TypeVar("T")


class Journal(Generic[T]):
    def __init__(self) -> None:
        self._entries: list[T] = []
        self._start = 0
        self.end = 0
        """The position behind the last entry."""

    def append(self, entry: T) -> None:
        self._entries.append(entry)
        self.end += 1
        if len(self._entries) > LIMIT:
            cut = LIMIT // 2
            del self._entries[:cut]
            self._start += cut

    def since(self, position: int) -> list[T] | None:
        """What changed since a position, repeats included; None when that far back is no longer known."""
        if position < self._start:
            return None
        return self._entries[position - self._start :]

    def mark(self) -> int:
        return self.end

    def rewind(self, mark: int) -> None:
        """Drop what was written since `mark`: it was undone."""
        if mark >= self._start:
            del self._entries[mark - self._start :]
            self.end = mark
