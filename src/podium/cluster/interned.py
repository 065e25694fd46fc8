"""Values that many nodes share, kept once: taint lists, declared features.

Thousands of nodes have a handful of distinct taint lists. Each distinct value gets a number and each row holds a
number, so that a question about taints is answered once per distinct list and spread over the rows by indexing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from podium.cluster.columns import ColumnSet

T = TypeVar("T", bound=Hashable)


class Interned(Generic[T]):
    """Per row one of few distinct values; number 0 is the value of an absent node. `version` moves with any row's."""

    def __init__(self, columns: ColumnSet, empty: T) -> None:
        self._column = columns.new(np.int32)
        self._number: dict[T, int] = {empty: 0}
        self.values: list[T] = [empty]
        self.version = 0

    @property
    def numbers(self) -> NDArray[np.int32]:
        return self._column.view

    def set(self, row: int, value: T) -> None:
        number = self._number.get(value)
        if number is None:
            number = self._number[value] = len(self.values)
            self.values.append(value)
        self._put(row, number)

    def clear(self, row: int) -> None:
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
