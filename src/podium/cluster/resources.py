"""What nodes offer and what their pods ask for, as integer columns.

Every node has cpu, memory and ephemeral storage: `allocatable` and `requested` are int64[resource, row], so that one
resource over all nodes is contiguous. All other resources are scarce (see `cluster.scarce`) and go by name. CPU is in
thousandths, everything else in units, both rounded up, as kube-scheduler keeps them. `nonzero` is what scoring uses for
CPU and memory: pods that ask for nothing count 100m and 200 MiB per container. The number of pods a node may hold is
not a resource here but the column `allowed_pods`, compared with `pod_count`.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy

import numpy as np
from numpy.typing import NDArray

from podium.cluster.columns import ColumnSet
from podium.cluster.facts import PodFacts
from podium.cluster.scarce import ScarceColumns
from podium.kube import Amount
from podium.kube.quantity import milli, units
from podium.kube.requests import is_scalar_resource_name

CPU, MEMORY, EPHEMERAL_STORAGE = 0, 1, 2
CORE_RESOURCES = ("cpu", "memory", "ephemeral-storage")
NUMBER = {name: number for number, name in enumerate(CORE_RESOURCES)}

Amounts = NDArray[np.int64]


class ResourceColumns:
    def __init__(self, columns: ColumnSet) -> None:
        self._allocatable = columns.new(np.int64, (len(CORE_RESOURCES),))
        self._requested = columns.new(np.int64, (len(CORE_RESOURCES),))
        self._scarce_allocatable = ScarceColumns(columns)
        self._scarce_requested = ScarceColumns(columns)
        self._scarce_on: dict[int, list[str]] = {}
        self._nonzero = columns.new(np.int64, (2,))
        self._allowed_pods = columns.new(np.int64)
        self._pod_count = columns.new(np.int64)

    @property
    def allocatable(self) -> Amounts:
        return self._allocatable.view

    @property
    def requested(self) -> Amounts:
        return self._requested.view

    @property
    def nonzero(self) -> Amounts:
        return self._nonzero.view

    @property
    def allowed_pods(self) -> Amounts:
        return self._allowed_pods.view

    @property
    def pod_count(self) -> Amounts:
        return self._pod_count.view

    def allocatable_of(self, name: str) -> Amounts:
        """int64[rows]: what the nodes offer of any resource."""
        number = NUMBER.get(name)
        return self._scarce_allocatable.over_rows(name) if number is None else self._allocatable.view[number]

    def requested_of(self, name: str) -> Amounts:
        """int64[rows]: what pods ask for of any resource."""
        number = NUMBER.get(name)
        return self._scarce_requested.over_rows(name) if number is None else self._requested.view[number]

    def scarce_on(self, name: str, row: int) -> tuple[int, int]:
        """(allocatable, requested) of a scarce resource on one row."""
        return self._scarce_allocatable.get(name, row), self._scarce_requested.get(name, row)

    def unused(self, columns: ColumnSet) -> ResourceColumns:
        """The same nodes without any pods; to be read only."""
        unused = copy(self)
        unused._requested = columns.new(np.int64, (len(CORE_RESOURCES),))
        unused._scarce_requested = ScarceColumns(columns)
        unused._nonzero = columns.new(np.int64, (2,))
        unused._pod_count = columns.new(np.int64)
        return unused

    def set_allocatable(self, row: int, allocatable: Mapping[str, Amount]) -> None:
        self.clear_allocatable(row)
        for name, amount in allocatable.items():
            if name == "cpu":
                self.allocatable[CPU, row] = milli(amount)
            elif name == "pods":
                self.allowed_pods[row] = units(amount)
            elif name in NUMBER:
                self.allocatable[NUMBER[name], row] = units(amount)
            elif is_scalar_resource_name(name):
                self._scarce_allocatable.set(name, row, units(amount))
                self._scarce_on.setdefault(row, []).append(name)

    def clear_allocatable(self, row: int) -> None:
        self.allocatable[:, row] = 0
        self.allowed_pods[row] = 0
        for name in self._scarce_on.pop(row, ()):
            self._scarce_allocatable.set(name, row, 0)

    def add_pod(self, facts: PodFacts, row: int, sign: int) -> None:
        """Count a pod in (+1) or out (−1)."""
        for name, amount in facts.requested:
            number = NUMBER.get(name)
            if number is None:
                self._scarce_requested.add(name, row, sign * amount)
            else:
                self._requested.view[number, row] += sign * amount
        nonzero = self._nonzero.view
        nonzero[0, row] += sign * facts.nonzero_cpu
        nonzero[1, row] += sign * facts.nonzero_memory
        self._pod_count.view[row] += sign
