"""Caches what was found out about each row until something new is measured, or its node changes.

Cycles ask about the row where the last pod went, and with something for every row at hand they need not look twice.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Generic, TypeVar

from podium.cluster import Cluster
from podium.load.readings import GenerationCounter

T = TypeVar("T")
H = TypeVar("H", bound=Hashable)


class RowCache(Generic[T]):
    """One value for each row. `find(rows)` finds those of adjacent rows; `generation` counts what is measured."""

    def __init__(self, cluster: Cluster, generation: GenerationCounter, find: Callable[[slice], list[T]]) -> None:
        self._cursor = cluster.node_changes.cursor()
        self._generation = generation
        self._find = find
        self._seen = -1
        self._known: list[T] = []

    def of(self, row: int) -> T:
        if self._generation.count != self._seen or not self._cursor.at_end:
            self._catch_up()
        return self._known[row]

    def _catch_up(self) -> None:
        changed, measured = self._cursor.read(), self._generation.count != self._seen
        self._seen = self._generation.count
        if changed is None or measured or any(row >= len(self._known) for row in changed):
            self._known = self._find(slice(None))
            return
        for row in changed:
            (self._known[row],) = self._find(slice(row, row + 1))


def shared(values: Iterable[H]) -> Iterator[H]:
    """The same values, equal ones as one object: what many rows share need not be fetched from memory for each."""
    seen: dict[H, H] = {}
    for value in values:
        yield seen.setdefault(value, value)
