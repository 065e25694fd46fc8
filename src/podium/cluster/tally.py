"""A count per row that knows when it last moved: of pods that match a query, of pods that hold a term."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from podium.cluster.columns import Column


class Tally:
    """`version` moves whenever a count does, and no two tallies that share their ticks ever share a version."""

    __slots__ = ("_column", "_ticks", "total", "version")

    def __init__(self, column: Column, ticks: Iterator[int]) -> None:
        self._column = column
        self._ticks = ticks
        self.total = 0
        self.version = next(ticks)

    @property
    def per_row(self) -> NDArray[np.int64]:
        return self._column.view

    def add(self, row: int, delta: int) -> None:
        self._column.view[row] += delta
        self.total += delta
        self.version = next(self._ticks)
