"""Holds node labels as columns of interned values, and evaluates selectors on them.

Each label key that is asked about becomes one int32 column: 0 where the node lacks the key, else the number of the
value. A requirement is then a small truth table over the values, indexed by the column; its cost does not depend on how
many labels nodes carry.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from podium.cluster.columns import Column, ColumnSet
from podium.kube.selector import Requirement

Mask = NDArray[np.bool_]
Ids = NDArray[np.int32]


class LabelColumn:
    """One label key: `ids` per row (0 = absent) and the value behind each id."""

    __slots__ = ("_column", "id_of", "values")

    def __init__(self, column: Column) -> None:
        self._column = column
        self.id_of: dict[str, int] = {}
        self.values: list[str] = [""]

    @property
    def ids(self) -> Ids:
        return self._column.view

    def set(self, row: int, value: str | None) -> None:
        self._column.view[row] = 0 if value is None else self._intern(value)

    def _intern(self, value: str) -> int:
        number = self.id_of.get(value)
        if number is None:
            number = self.id_of[value] = len(self.values)
            self.values.append(value)
        return number

    def sums(self, per_row: NDArray[np.int64]) -> NDArray[np.int64]:
        """Per value id the sum over the nodes that have it; entry 0, for nodes without the label, stays 0."""
        totals = np.bincount(self.ids, weights=per_row, minlength=len(self.values)).astype(np.int64)
        totals[0] = 0
        return totals

    def truth(self, requirement: Requirement) -> Mask:
        """The requirement's answer per value id; entry 0 is the answer for an absent key."""
        table = np.zeros(len(self.values), dtype=np.bool_)
        match requirement.operator:
            case "In":
                table[[self.id_of[v] for v in requirement.values if v in self.id_of]] = True
            case "NotIn":
                table[:] = True
                table[[self.id_of[v] for v in requirement.values if v in self.id_of]] = False
            case "Exists":
                table[1:] = True
            case "DoesNotExist":
                table[0] = True
            case _:  # Gt, Lt: the requirement itself knows how numbers are read
                for number, value in enumerate(self.values[1:], start=1):
                    table[number] = requirement.matches({requirement.key: value})
        return table


class NodeLabels:
    """The label columns of all nodes, made on first use and kept from then on.

    `version` moves when a node's labels change, and when a node comes or goes.
    """

    def __init__(self, columns: ColumnSet) -> None:
        self._columns = columns
        self._by_key: dict[str, LabelColumn] = {}
        self._labels_of_row: dict[int, Mapping[str, str]] = {}
        self.version = 0

    @property
    def rows(self) -> int:
        return self._columns.rows

    def column(self, key: str) -> LabelColumn:
        column = self._by_key.get(key)
        if column is None:
            column = self._by_key[key] = LabelColumn(self._columns.new(np.int32))
            for row, labels in self._labels_of_row.items():
                column.set(row, labels.get(key))
        return column

    def set_row(self, row: int, labels: Mapping[str, str]) -> None:
        self._labels_of_row[row] = labels
        self.version += 1
        for key, column in self._by_key.items():
            column.set(row, labels.get(key))

    def clear_row(self, row: int) -> None:
        self._labels_of_row.pop(row, None)
        self.version += 1
        for column in self._by_key.values():
            column.set(row, None)

    def match(self, requirements: Iterable[Requirement], rows: NDArray[np.intp] | None = None) -> Mask:
        """bool per row (of `rows`, or of all): every requirement holds."""
        answer: Mask | None = None
        for requirement in requirements:
            column = self.column(requirement.key)
            ids = column.ids if rows is None else column.ids[rows]
            holds = column.truth(requirement)[ids]
            answer = holds if answer is None else answer & holds
        if answer is None:
            return np.ones(self._columns.rows if rows is None else len(rows), dtype=np.bool_)
        return answer
