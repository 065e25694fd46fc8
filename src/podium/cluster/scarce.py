"""Holds amounts per row of things that most nodes do not have: devices, huge pages, other extended resources.

There may be thousands of names, each known to one node only: a column for each would be nodes × names of zeros. While
few rows have any of a thing, its amounts are kept by row; from then on it has a column.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from podium.cluster.columns import Column, ColumnSet

FEW_ROWS = 64


class ScarceColumns:
    """Amounts by name and row; 0 where nothing was set."""

    def __init__(self, columns: ColumnSet) -> None:
        self._columns = columns
        self._few: dict[str, dict[int, int]] = {}
        self._many: dict[str, Column] = {}

    def get(self, name: str, row: int) -> int:
        column = self._many.get(name)
        if column is not None:
            return int(column.view[row])
        few = self._few.get(name)
        return 0 if few is None else few.get(row, 0)

    def set(self, name: str, row: int, amount: int) -> None:
        column = self._many.get(name)
        if column is not None:
            column.view[row] = amount
            return
        few = self._few.setdefault(name, {})
        few[row] = amount
        if not amount:
            del few[row]
            if not few:
                del self._few[name]
        elif len(few) > FEW_ROWS:
            column = self._many[name] = self._columns.new(np.int64)
            column.view[list(few)] = list(few.values())
            del self._few[name]

    def add(self, name: str, row: int, amount: int) -> None:
        total = self.get(name, row) + amount
        self.set(name, row, (total + 2**63) % 2**64 - 2**63)  # past 64 bits sums wrap, as kube-scheduler's do

    def over_rows(self, name: str) -> NDArray[np.int64]:
        """int64[rows]; to be read, not written to."""
        column = self._many.get(name)
        if column is not None:
            return column.view
        amounts = np.zeros(self._columns.rows, dtype=np.int64)
        few = self._few.get(name)
        if few:
            amounts[list(few)] = list(few.values())
        return amounts
