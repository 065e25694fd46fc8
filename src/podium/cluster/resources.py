"""Holds what nodes offer and what their pods request, as integer columns.

Every node has cpu, memory and ephemeral storage. What is asked for and offered of them stands in one matrix,
int64[line, row], so that one resource over all nodes is contiguous, and all about one node is one slice. All other
resources are scalar (see `ScalarColumns`) and go by name. CPU is in thousandths, everything else in units, both
rounded up, as kube-scheduler keeps them. `nonzero` is what scoring uses for CPU and memory: pods that ask for nothing
count 100m and 200 MiB per container. The number of pods a node may hold is not a resource here but the column
`allowed_pods`, compared with `pod_count`.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from kubecel.quantity import milli, units
from podium.cluster.columns import ColumnSet
from podium.kube import Amount
from podium.kube.requests import is_scalar_resource_name

if TYPE_CHECKING:
    from podium.cluster.facts import PodFacts


from podium.cluster.columns import Column

CPU, MEMORY, EPHEMERAL_STORAGE = 0, 1, 2
CORE_RESOURCES = ("cpu", "memory", "ephemeral-storage")
NUMBER = {name: number for number, name in enumerate(CORE_RESOURCES)}

# The lines of the matrix. What pods add comes first.
REQUESTED, NONZERO, POD_COUNT, ALLOCATABLE, ALLOWED_PODS = 0, 3, 5, 6, 9
COUNTED, LINES = 6, 10

Amounts = NDArray[np.int64]
FEW_ROWS = 64


class ScalarColumns:
    """Amounts by name and row of things that most nodes do not have: devices, huge pages, other extended resources.

    There may be thousands of names, each known to one node only: a column for each would be nodes × names of zeros.
    While few rows have any of a thing, its amounts are kept by row; from then on it has a column. Where nothing was
    set, the amount is 0.
    """

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

    @property
    def names(self) -> frozenset[str]:
        """The things of which some row has any."""
        return frozenset(self._few).union(name for name, column in self._many.items() if column.view.any())

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


class ResourceColumns:
    def __init__(self, columns: ColumnSet) -> None:
        self._lines = columns.new(np.int64, (LINES,))
        self._scalar_allocatable = ScalarColumns(columns)
        self._scalar_requested = ScalarColumns(columns)
        self._scalar_on: dict[int, list[str]] = {}
        self._read = -1
        """The row that `on` was asked about last, while nothing has changed there."""
        self._numbers: list[int] = []

    @property
    def allocatable(self) -> Amounts:
        return self._lines.view[ALLOCATABLE:ALLOWED_PODS]

    @property
    def requested(self) -> Amounts:
        return self._lines.view[REQUESTED:NONZERO]

    @property
    def nonzero(self) -> Amounts:
        return self._lines.view[NONZERO:POD_COUNT]

    @property
    def allowed_pods(self) -> Amounts:
        allowed: Amounts = self._lines.view[ALLOWED_PODS]
        return allowed

    @property
    def pod_count(self) -> Amounts:
        count: Amounts = self._lines.view[POD_COUNT]
        return count

    def allocatable_of(self, name: str) -> Amounts:
        """int64[rows]: what the nodes offer of any resource."""
        number = NUMBER.get(name)
        return self._scalar_allocatable.over_rows(name) if number is None else self._lines.view[ALLOCATABLE + number]

    def requested_of(self, name: str) -> Amounts:
        """int64[rows]: what pods ask for of any resource."""
        number = NUMBER.get(name)
        return self._scalar_requested.over_rows(name) if number is None else self._lines.view[REQUESTED + number]

    def table(self, names: tuple[str, ...], *, offered: bool = False, nonzero: bool = False) -> Amounts:
        """int64[name, row]: what pods ask for (`nonzero`: at least the defaults), or what nodes offer."""
        number = len(names)
        if names == CORE_RESOURCES[:number] and (number <= 2 or not nonzero):
            first = ALLOCATABLE if offered else NONZERO if nonzero else REQUESTED
            return self._lines.view[first : first + number]
        if offered:
            return np.array([self.allocatable_of(name) for name in names])
        counted = {"cpu": NONZERO, "memory": NONZERO + 1} if nonzero else {}
        lines = self._lines.view
        return np.array([lines[counted[name]] if name in counted else self.requested_of(name) for name in names])

    def on(self, row: int) -> list[int]:
        """All lines of one row as plain integers; to be read, not written to."""
        if row != self._read:
            self._numbers = self._lines.view[:, row].tolist()
            self._read = row
        return self._numbers

    def scalar_on(self, name: str, row: int) -> tuple[int, int]:
        """(allocatable, requested) of a scalar resource on one row."""
        return self._scalar_allocatable.get(name, row), self._scalar_requested.get(name, row)

    @property
    def scalar_names(self) -> frozenset[str]:
        """The scalar resources that nodes offer."""
        return self._scalar_allocatable.names

    def unused(self, columns: ColumnSet) -> ResourceColumns:
        """The same nodes without any pods; to be read only."""
        unused = copy(self)
        unused._lines = columns.new(np.int64, (LINES,))
        unused._lines.view[ALLOCATABLE:] = self._lines.view[ALLOCATABLE:]
        unused._scalar_requested = ScalarColumns(columns)
        unused._read = -1
        return unused

    def set_allocatable(self, row: int, allocatable: Mapping[str, Amount]) -> None:
        self.clear_allocatable(row)
        offered = self._lines.view[ALLOCATABLE:, row]
        for name, amount in allocatable.items():
            if name == "cpu":
                offered[CPU] = milli(amount)
            elif name == "pods":
                offered[ALLOWED_PODS - ALLOCATABLE] = units(amount)
            elif name in NUMBER:
                offered[NUMBER[name]] = units(amount)
            elif is_scalar_resource_name(name):
                self._scalar_allocatable.set(name, row, units(amount))
                self._scalar_on.setdefault(row, []).append(name)

    def clear_allocatable(self, row: int) -> None:
        self._read = -1
        self._lines.view[ALLOCATABLE:, row] = 0
        for name in self._scalar_on.pop(row, ()):
            self._scalar_allocatable.set(name, row, 0)

    def add_pod(self, facts: PodFacts, row: int, sign: int) -> None:
        """Count a pod in (+1) or out (−1)."""
        self._read = -1
        totals = self._lines.view[:COUNTED, row]
        if sign > 0:
            totals += facts.counted
        else:
            totals -= facts.counted
        for name, amount in facts.scalar:
            self._scalar_requested.add(name, row, sign * amount)
