"""Reads runs from a store when they are asked for, and keeps the last ones in a bounded part of memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import overload

from podium_lab.simulator.run import RunResult
from podium_lab.simulator.simulation_units import run_in
from podium_lab.units.store import UnitStore, result_name
from podium_lab.units.unit import DamagedError, StoreError, Unit

MOST_BYTES = 128 << 20
"""Bytes of runs in memory at a time, estimated from what was stored."""
OBJECTS = 4_000
"""Bytes that the objects of a run take beside its numbers."""


class StoredRuns(Sequence[RunResult]):
    """The runs of some units, in their order."""

    def __init__(self, store: UnitStore, units: Sequence[Unit]) -> None:
        self._store = store
        self._units = units
        self._cached: OrderedDict[int, tuple[RunResult, int]] = OrderedDict()
        self._bytes = 0

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
        found = self._cached.get(number)
        if found is None:
            found = self._cached[number] = self._read(self._units[number])
            self._bytes += found[1]
            while self._bytes > MOST_BYTES and len(self._cached) > 1:
                self._bytes -= self._cached.popitem(last=False)[1][1]
        return found[0]

    def _read(self, unit: Unit) -> tuple[RunResult, int]:
        """A run, and about how many bytes it takes."""
        place = f"{self._store.url}/{result_name(unit.key)}"
        try:
            payload = self._store.result(unit)
            if payload is None:
                raise DamagedError("is gone")
            return run_in(payload, unit), 2 * len(payload) + OBJECTS
        except DamagedError as error:
            raise StoreError(f"{place}: {error}; start the same command again to replace it") from None
