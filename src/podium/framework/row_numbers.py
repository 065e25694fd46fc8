"""Works out numbers about each node that the cluster does not keep itself: its capacity, what its annotations say.

They are worked out row by row, once, and again for the rows that the cluster's journal of nodes names. Numbers go into
the column when all of it is wanted: most cycles want one row.

Also reads numbers from the text of annotations, strictly: what is not plainly a number is None, never a guess.

Go's rules hold, because annotators and their readers grew up with them: ASCII digits, an optional sign, no blanks, no
underscores, no hexadecimal. Decimals may have an exponent; `nan` and `inf` are read as such, so that the reader can
tell a measurement that went wrong from none.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from podium.cluster import Cluster, Cursor
from podium.cluster.columns import Column

_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_WORD = re.compile(r"nan|[+-]?inf(?:inity)?", re.IGNORECASE)
_WHOLE = re.compile(r"[+-]?[0-9]{1,4000}")


class RowNumbers:
    """`of_row(cluster, row)` gives the numbers of a row. They depend on its node alone."""

    def __init__(
        self, lines: int, of_row: Callable[[Cluster, int], Sequence[Any]], *, dtype: DTypeLike = np.int64
    ) -> None:
        self._lines = lines
        self._dtype = dtype
        self._of_row = of_row
        self._cluster: Cluster | None = None
        self._cursor: Cursor[int]
        self._numbers: list[Sequence[Any]] = []
        self._unwritten: dict[int, None] = {}
        self._column: Column

    def over_rows(self, cluster: Cluster) -> NDArray[Any]:
        """Numbers[line, row], up to date; to be read only."""
        self._catch_up(cluster)
        view = self._column.view
        if self._unwritten:
            rows, self._unwritten = list(self._unwritten), {}
            view[:, rows] = np.array([self._numbers[row] for row in rows], dtype=self._dtype).T
        return view

    def on(self, cluster: Cluster, row: int) -> Sequence[Any]:
        """The numbers of one row."""
        self._catch_up(cluster)
        return self._numbers[row]

    def _catch_up(self, cluster: Cluster) -> None:
        if cluster is not self._cluster:
            self._cluster, self._cursor = cluster, cluster.node_changes.cursor()
            self._column = cluster.columns.new(self._dtype, (self._lines,))
            self._unwritten.clear()
            self._numbers.clear()
        changed = self._cursor.read()
        if changed is not None and not changed:
            return
        numbers, missing = self._numbers, cluster.columns.rows - len(self._numbers)
        if missing:
            numbers += [()] * missing
        for row in range(cluster.columns.rows) if changed is None else dict.fromkeys(changed):
            numbers[row] = self._of_row(cluster, row)
            self._unwritten[row] = None


def read_decimal(text: str | None) -> float | None:
    """A decimal number; None where there is none, or where it is as large as infinity.

    >>> read_decimal("1.5e3"), read_decimal(" 7"), read_decimal("N/A"), read_decimal("NaN"), read_decimal("1e999")
    (1500.0, None, None, nan, None)
    """
    if text is None:
        return None
    if _DECIMAL.fullmatch(text):
        number = float(text)
        return number if math.isfinite(number) else None
    return float(text) if _WORD.fullmatch(text) else None


def read_whole(text: str | None) -> int | None:
    """A whole number of any size.

    >>> read_whole("+7"), read_whole("07"), read_whole("-3"), read_whole("5.5"), read_whole(" 7"), read_whole(None)
    (7, 7, -3, None, None, None)
    """
    return int(text) if text is not None and _WHOLE.fullmatch(text) else None
