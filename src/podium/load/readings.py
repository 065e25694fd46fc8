"""Holds measured load of nodes: the protocol between the sources that fetch it and the plugins that score by it.

A plugin names in its `__init__` the series it follows, and holds on to the `Readings` it gets. Those are written
between cycles, in the background; a cycle only reads them. `Readings.generation` belongs into the plugin's answer key,
so that cached answers are fresh until something new is measured:

    class Quiet(Plugin):
        def __init__(self, args, handle):
            super().__init__(args, handle)
            self.readings = follow(handle, Series(source=args.source, query="node_load1"))

        def answer_key(self, pod):
            return self.readings.generation

        def score(self, cycle, nodes):
            load = nodes.pick(self.readings.column(nodes.cluster))  # NaN: nothing is known
            return np.where(np.isnan(load), 0, 100 - np.clip(load, 0, 100)).astype(np.int64)

What a series is, is between plugins and sources: here it is any hashable value, and equal ones share their readings.
`podium.load.series.Series` is what the sources of a live scheduler take.

Also caches what was found out about each row until something new is measured, or its node changes.

Cycles ask about the row where the last pod went, and with something for every row at hand they need not look twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster, Cursor

if TYPE_CHECKING:
    from podium.framework.handle import Handle


T = TypeVar("T")
H = TypeVar("H", bound=Hashable)


class GenerationCounter:
    """Counts the changes of several readings: one answer key for a plugin that follows them all."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


class Readings:
    """What is known of one series. Written by a source between cycles, read by plugins."""

    def __init__(self) -> None:
        self.generation = 0
        """Moves with every refresh that changed anything, also when values are given up as too old."""
        self.measured_at = 0.0
        """When the newest of the values was measured, in seconds of the engine's clock (for load-watcher the end of
        its window); 0.0 while nothing came."""
        self.values: dict[str, float] = {}
        """By name of node; only finite numbers."""
        self.times: dict[str, float] = {}
        """When the value of a node was measured, where that is not `measured_at`."""
        self.counters: list[GenerationCounter] = []
        """They count on whenever `generation` moves."""
        self.problem: str | None = None
        """Why the last refresh failed; None when it went well."""
        self._column: NDArray[np.float64] | None = None
        self._column_of: tuple[Cluster, int] | None = None
        self._cursor: Cursor[int]

    def of(self, node_name: str) -> float | None:
        return self.values.get(node_name)

    def time_of(self, node_name: str) -> float:
        """When the value of a node was measured; 0.0 while nothing came."""
        return self.times.get(node_name, self.measured_at)

    @property
    def oldest(self) -> float:
        """When the oldest of the values was measured; 0.0 while nothing came."""
        times = self.times.values()
        return min(times) if times and len(times) == len(self.values) else min((self.measured_at, *times))

    def column(self, cluster: Cluster) -> NDArray[np.float64]:
        """float64[rows], NaN where nothing is known; the same array until there are new values or nodes."""
        column, names, key = self._column, cluster.names, self._column_of
        if key is None or key[0] is not cluster:
            self._cursor, column = cluster.node_changes.cursor(), None
        changed = self._cursor.read()
        if column is None or key is None or key[1] != self.generation or len(column) != len(names) or changed is None:
            values = self.values
            column = np.array([values.get(name, math.nan) for name in names], dtype=np.float64)
        elif changed:
            column = column.copy()  # a plugin may still hold the old one
            for row in changed:
                column[row] = self.values.get(names[row], math.nan)
        else:
            return column
        column.flags.writeable = False
        self._column, self._column_of = column, (cluster, self.generation)
        return column

    def write(self, values: dict[str, float], measured_at: float, times: dict[str, float] | None = None) -> None:
        """Take over what a refresh brought; for sources. Values that are no finite numbers are left out."""
        known = {name: value for name, value in values.items() if math.isfinite(value)}
        times = {} if times is None else {name: times[name] for name in known if name in times}
        if known != self.values or measured_at != self.measured_at or times != self.times:
            self.values, self.measured_at, self.times = known, measured_at, times
            self._move()

    def give_up(self, older_than: float) -> None:
        """Forget values that were measured before a time; for sources."""
        if self.times:
            fresh = {name: value for name, value in self.values.items() if self.time_of(name) >= older_than}
        else:
            fresh = self.values if self.measured_at >= older_than else {}
        if len(fresh) < len(self.values):
            self.values = fresh
            self.times = {name: time for name, time in self.times.items() if name in fresh}
            self._move()

    def _move(self) -> None:
        self.generation += 1
        for counter in self.counters:
            counter.count += 1


class LoadSource(Protocol):
    """Measured load of nodes, refreshed in the background; never asked for inside a cycle."""

    def follow(self, series: Hashable) -> Readings:
        """The readings of a series from now on: the same object for equal series."""


class GivenLoad:
    """Readings set by hand: for tests and for simulated usage."""

    def __init__(self) -> None:
        self.followed: dict[Hashable, Readings] = {}

    def follow(self, series: Hashable) -> Readings:
        return self.followed.setdefault(series, Readings())

    def set(self, series: Hashable, values: Mapping[str, float], measured_at: float) -> None:
        self.follow(series).write(dict(values), measured_at)


def follow(handle: Handle, series: Hashable, counter: GenerationCounter | None = None) -> Readings:
    """The readings of a series; they stay empty where no load is measured. `counter` counts their changes."""
    readings = Readings() if handle.load is None else handle.load.follow(series)
    if counter is not None:
        readings.counters.append(counter)
    return readings


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
