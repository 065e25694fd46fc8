"""Keeps account of the idle GPU of a cluster by model, row by row as pods come and go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from podium.cluster import Cluster
from podium_plugins.gpu.devices import GpuDevices
from podium_plugins.gpu.request import WHOLE


class IdleGpu:
    """Thousandths of GPU by model: what nodes have, and what of it is idle."""

    def __init__(self, cluster: Cluster, devices: GpuDevices) -> None:
        self._cluster = cluster
        self._devices = devices
        self._cursor = cluster.row_cursor()
        self._rows: list[tuple[str, int, int]] = []
        self.capacity: Counter[str] = Counter()
        self.free: Counter[str] = Counter()
        self.generation = 0
        """Moves with the capacity."""

    def catch_up(self) -> None:
        if self._cursor.at_end:
            return
        changes = self._cursor.read()
        cluster, rows = self._cluster, self._rows
        missing = cluster.columns.rows - len(rows)
        rows += [("", 0, 0)] * missing
        changed: Iterable[int] = range(len(rows)) if changes is None else dict.fromkeys((*changes[0], *changes[1]))
        before = None if changes is not None and not changes[0] else +self.capacity
        for row in changed:
            model, number, idle = rows[row]
            self.capacity[model] -= WHOLE * number
            self.free[model] -= idle
            rows[row] = model, number, idle = self._of(row)
            self.capacity[model] += WHOLE * number
            self.free[model] += idle
        if before is not None and before != +self.capacity:
            self.generation += 1

    def _of(self, row: int) -> tuple[str, int, int]:
        if self._cluster.nodes[row] is None:
            return "", 0, 0
        free = self._devices.free_on(row)
        return self._devices.model_of(row) or "", len(free), sum(free)
