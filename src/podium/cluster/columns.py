"""Holds growing arrays with one entry per node row.

Every fact about nodes that scheduling compares is an array over rows, so that one NumPy expression answers for the
whole cluster. Rows are appended as nodes appear and reused when nodes go; a row never moves, so that answers cached
per row stay valid. A `Column` keeps spare capacity and shows its used part as `view`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar
from weakref import WeakSet

import numpy as np
from numpy.typing import DTypeLike, NDArray

T = TypeVar("T", bound=Hashable)


class Column:
    """One array whose last axis is the node row; `view` is the part in use."""

    __slots__ = ("__weakref__", "data", "view")

    def __init__(self, rows: int, dtype: DTypeLike, lead: tuple[int, ...] = ()) -> None:
        self.data: NDArray[Any] = np.zeros((*lead, max(rows, 16)), dtype=dtype)
        """With the spare capacity."""
        self.view: NDArray[Any] = self.data[..., :rows]
        """One entry per row; a new array once rows are added, so read it when you need it."""

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


class Interned(Generic[T]):
    """Per row one of few distinct values, such as taint lists or declared features.

    Thousands of nodes have a handful of distinct taint lists. Each distinct value gets a number and each row holds a
    number, so that a question about taints is answered once per distinct list and spread over the rows by indexing.
    Number 0 is the value of an absent node.
    """

    def __init__(self, columns: ColumnSet, empty: T) -> None:
        self._column = columns.new(np.int32)
        self._number: dict[T, int] = {empty: 0}
        self.values: list[T] = [empty]
        """The distinct values, by number."""
        self.version = 0
        """Moves with every change of a row's value."""

    @property
    def numbers(self) -> NDArray[np.int32]:
        """int32[rows]: the number of each row's value."""
        return self._column.view

    def set(self, row: int, value: T) -> None:
        """Give a row its value."""
        number = self._number.get(value)
        if number is None:
            number = self._number[value] = len(self.values)
            self.values.append(value)
        self._put(row, number)

    def clear(self, row: int) -> None:
        """Give a row the value of an absent node."""
        self._put(row, 0)

    def _put(self, row: int, number: int) -> None:
        if self._column.view[row] != number:
            self._column.view[row] = number
            self.version += 1

    def ask(self, question: Callable[[T], Any], dtype: DTypeLike, rows: NDArray[np.intp] | None = None) -> NDArray[Any]:
        """The answer for each row, asked once per distinct value (or once per row, if that is less)."""
        numbers = self._column.view if rows is None else self._column.view[rows]
        if rows is not None and len(rows) <= len(self.values):
            return np.array([question(self.values[number]) for number in numbers.tolist()], dtype=dtype)
        answers = np.array([question(value) for value in self.values], dtype=dtype)
        if (answers == answers[0]).all():
            return np.full(numbers.shape, answers[0])
        per_row: NDArray[Any] = answers[numbers]
        return per_row
