"""Records what changed, in order, so that cached answers can be refreshed piece by piece.

An entry is a row, or the name of a node. A reader has a cursor: it hands out what was recorded since it was last read,
and moves on. The journal is cut when it grows long, and entries of a dry run are taken back when the dry run ends; a
cursor that cannot say what changed since then says that everything may have.
"""

from __future__ import annotations

import sys
from typing import Generic, TypeVar

LIMIT = 100_000

T = TypeVar("T")


class Journal(Generic[T]):
    """The entries that cursors can still be asked for."""

    __slots__ = ("_entries", "_safe_end", "_start", "version")

    def __init__(self) -> None:
        self._entries: list[T] = []
        self._start = 0
        self.version = 0
        """Grows with every entry: the position behind the last one."""
        self._safe_end = sys.maxsize
        """Entries from this position on belong to a dry run."""

    def append(self, entry: T) -> None:
        self._entries.append(entry)
        self.version += 1
        if len(self._entries) > LIMIT:
            cut = LIMIT // 2
            del self._entries[:cut]
            self._start += cut

    def cursor(self) -> Cursor[T]:
        """A reader's place in the journal. Its first answer is that everything may have changed."""
        return Cursor(self)

    def begin_dry_run(self) -> tuple[int, int]:
        """Entries from here on will be taken back by `end_dry_run`, which wants what this gives. Dry runs may nest."""
        before = self.version, self._safe_end
        self._safe_end = min(before)
        return before

    def end_dry_run(self, before: tuple[int, int]) -> None:
        position, self._safe_end = before
        if position >= self._start:
            del self._entries[position - self._start :]
            self.version = position


class Cursor(Generic[T]):
    """How far one reader has read a journal."""

    __slots__ = ("_journal", "_position")

    def __init__(self, journal: Journal[T]) -> None:
        self._journal = journal
        self._position = -1

    @property
    def at_end(self) -> bool:
        """Whether nothing was recorded since the last `read`."""
        return self._position == self._journal.version

    def read(self) -> list[T] | None:
        """What was recorded since the last `read`, repeats included; None: everything may have changed."""
        journal, position, end = self._journal, self._position, self._journal.version
        if position == end:
            return []
        # What is read of a dry run will be taken back, and no entry will say so: the next read starts over.
        self._position = end if end <= journal._safe_end else -1
        start = journal._start
        return None if position < start else journal._entries[position - start :]


class RowCursor:
    """How far one reader has read the two journals of rows of a cluster."""

    __slots__ = ("_nodes", "_pods")

    def __init__(self, node_changes: Journal[int], pod_changes: Journal[int]) -> None:
        self._nodes = node_changes.cursor()
        self._pods = pod_changes.cursor()

    @property
    def at_end(self) -> bool:
        return self._pods.at_end and self._nodes.at_end

    def read(self) -> tuple[list[int], list[int]] | None:
        """(rows whose node changed, rows whose pods changed), repeats included; None: any row may have changed."""
        nodes, pods = self._nodes.read(), self._pods.read()
        return None if nodes is None or pods is None else (nodes, pods)
