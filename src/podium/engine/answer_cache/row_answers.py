"""Holds what is known of every row about pods of one signature, where each row stands for itself.

A row has a number: of the status with which a filter refuses it (0: it passes), or a score. The answer about all rows
at once comes with its own numbering; statuses that are found later, about changed rows, are numbered from −1 down, so
that neither numbering has to be rewritten for the other.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Rows
from podium.framework.status import Status

Numbers = NDArray[np.int64]
StatusOf = Callable[[int], Status]
"""What a number stands for."""


def no_status(number: int) -> Status:
    """For numbers that are scores."""
    raise AssertionError(f"score {number} stands for no status")


class RowAnswers:
    """`numbers`: int64[rows], None while every row has 0; `status_of` explains those that stand for a status."""

    __slots__ = ("_number_of", "_status_of", "_statuses", "numbers")

    def __init__(self) -> None:
        self.replace(None, no_status)

    def replace(self, numbers: Numbers | None, status_of: StatusOf) -> None:
        """Take over an answer about all rows. The numbers are the caller's no longer."""
        self.numbers = numbers
        self._status_of = status_of
        self._statuses: list[Status] = []
        self._number_of: dict[Status, int] = {}

    def set_status(self, row: int, status: Status | None, rows: int) -> int:
        """Take over the answer about one of `rows` rows; +1 when it is refused now and was not, −1 the other way."""
        numbers = self.numbers
        if numbers is None:
            if status is None:
                return 0
            numbers = self.numbers = np.zeros(rows, dtype=np.int64)
        before = bool(numbers[row])
        numbers[row] = 0 if status is None else self._number(status)
        return (status is not None) - before

    def set_rows(self, rows: Rows, numbers: Numbers, status_of: StatusOf) -> None:
        """Take over an answer about some rows; `numbers` is in their order."""
        assert self.numbers is not None
        if status_of is not no_status:
            refused = np.flatnonzero(numbers)
            numbers[refused] = [self._number(status_of(number)) for number in numbers[refused].tolist()]
        self.numbers[rows] = numbers

    def _number(self, status: Status) -> int:
        number = self._number_of.get(status)
        if number is None:
            self._statuses.append(status)
            number = self._number_of[status] = -len(self._statuses)
        return number

    def pick(self, rows: Rows) -> Numbers:
        """The numbers of some rows, in their order."""
        return np.zeros(len(rows), dtype=np.int64) if self.numbers is None else self.numbers[rows]

    def status_of(self, number: int) -> Status:
        return self._statuses[-number - 1] if number < 0 else self._status_of(number)
