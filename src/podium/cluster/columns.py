"""Holds growing arrays with one entry per node row.

Every fact about nodes that scheduling compares is an array over rows, so that one NumPy expression answers for the
whole cluster. Rows are appended as nodes appear and reused when nodes go; a row never moves, so that answers cached
per row stay valid. A `Column` keeps spare capacity and shows its used part as `view`.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakSet

import numpy as np
from numpy.typing import DTypeLike, NDArray


class Column:
    """One array whose last axis is the node row; `view` is the part in use."""

    __slots__ = ("__weakref__", "data", "view")

    def __init__(self, rows: int, dtype: DTypeLike, lead: tuple[int, ...] = ()) -> None:
        self.data: NDArray[Any] = np.zeros((*lead, max(rows, 16)), dtype=dtype)
        self.view: NDArray[Any] = self.data[..., :rows]

    def resize(self, rows: int) -> None:
        """Make `rows` rows visible; new ones are zero."""
        capacity = self.data.shape[-1]
        if rows > capacity:
            grown = np.zeros((*self.data.shape[:-1], max(rows, capacity + capacity // 2)), dtype=self.data.dtype)
            grown[..., :capacity] = self.data
            self.data = grown
        self.view = self.data[..., :rows]


class ColumnSet:
    """All columns over the same rows; they are resized together."""

    def __init__(self) -> None:
        self.rows = 0
        self._columns: WeakSet[Column] = WeakSet()

    def __len__(self) -> int:
        return len(self._columns)

    def new(self, dtype: DTypeLike, lead: tuple[int, ...] = ()) -> Column:
        column = Column(self.rows, dtype, lead)
        self._columns.add(column)
        return column

    def append_row(self) -> int:
        """Add one zeroed row to every column and return its index."""
        row = self.rows
        self.rows += 1
        for column in self._columns:
            column.resize(self.rows)
        return row
