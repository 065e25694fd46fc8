"""Reads runs from a store when they are asked for, and keeps the last few."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import overload

from podium_lab.simulator.run import RunResult
from podium_lab.simulator.simulation_units import run_in
from podium_lab.units.errors import DamagedError, StoreError
from podium_lab.units.store import UnitStore, result_name
from podium_lab.units.unit import Unit

KEPT = 400
"""Runs in memory at a time."""


class StoredRuns(Sequence[RunResult]):
    """The runs of some units, in their order."""

    def __init__(self, store: UnitStore, units: Sequence[Unit]) -> None:
        self._store = store
        self._units = units
        self._cached: OrderedDict[int, RunResult] = OrderedDict()

    def __len__(self) -> int:
        return len(self._units)

    @overload
    def __getitem__(self, index: int) -> RunResult: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[RunResult]: ...
    def __getitem__(self, index: int | slice) -> RunResult | Sequence[RunResult]:
        if isinstance(index, slice):
            return StoredRuns(self._store, self._units[index])
        number = range(len(self._units))[index]
        run = self._cached.get(number)
        if run is None:
            run = self._cached[number] = self._read(self._units[number])
            if len(self._cached) > KEPT:
                self._cached.popitem(last=False)
        return run

    def _read(self, unit: Unit) -> RunResult:
        place = f"{self._store.url}/{result_name(unit.key)}"
        try:
            payload = self._store.result(unit)
            if payload is None:
                raise DamagedError("is gone")
            return run_in(payload, unit)
        except DamagedError as error:
            raise StoreError(f"{place}: {error}; start the same command again to replace it") from None
