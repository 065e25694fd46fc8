"""Takes figures of shared GPUs: how much is allocated, how much of the rest typical pods cannot use.

Only the nodes whose pods changed are looked at again, so that figures can be taken after every pod.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from podium.cluster import Cluster
from podium.cluster.resources import ALLOCATABLE, CPU, REQUESTED
from podium_lab.simulator.pods import PodTemplate
from podium_plugins.gpu.devices import GpuDevices
from podium_plugins.gpu.fragmentation import Fragmentation
from podium_plugins.gpu.request import WHOLE
from podium_plugins.gpu.typical_pods import PodType


class GpuFigures:
    """The account of one run."""

    def __init__(self, cluster: Cluster, capacity: int, typical: Iterable[PodType]) -> None:
        """`capacity` is the GPUs of the nodes at the start, in thousandths."""
        self._cluster = cluster
        self._devices = GpuDevices.of(cluster)
        self._capacity = capacity
        self._fragmentation = Fragmentation(typical)
        self._demand = 0
        self._pod_changes = cluster.pod_changes.cursor()
        self._node_changes = cluster.node_changes.cursor()
        self._rows: list[tuple[int, int, int]] = []
        """Of each row: its GPUs, what of them is idle, and what of that is fragmented, times the typical pods."""
        self._offered = self._idle = self._fragmented = 0

    def arrived(self, template: PodTemplate) -> None:
        self._demand += template.gpu

    @property
    def arrived_pct(self) -> float:
        return 100 * self._demand / self._capacity

    def percentages(self) -> tuple[float, float, float]:
        """Allocated GPU, and fragmented GPU as a share of all and of what is idle."""
        self._catch_up()
        if not self._offered:
            return math.nan, math.nan, math.nan
        offered, idle = float(self._offered), float(self._idle)
        fragmented = self._fragmented / self._fragmentation.pods if self._fragmentation.pods else math.nan
        return (
            100 * (offered - idle) / offered,
            100 * fragmented / offered,
            100 * fragmented / idle if idle else 0.0,
        )

    def _catch_up(self) -> None:
        rows, nodes = self._pod_changes.read(), self._node_changes.read()
        changed: Iterable[int] = range(self._cluster.columns.rows)
        if rows is not None and nodes is not None:
            changed = dict.fromkeys((*rows, *nodes))
        while len(self._rows) < self._cluster.columns.rows:
            self._rows.append((0, 0, 0))
        for row in changed:
            before, now = self._rows[row], self._of_row(row)
            self._rows[row] = now
            self._offered += now[0] - before[0]
            self._idle += now[1] - before[1]
            self._fragmented += now[2] - before[2]

    def _of_row(self, row: int) -> tuple[int, int, int]:
        if self._cluster.nodes[row] is None:
            return 0, 0, 0
        free = self._devices.free_on(row)
        if not free:
            return 0, 0, 0
        numbers, fragmentation = self._cluster.resources.on(row), self._fragmentation
        level = fragmentation.level(numbers[ALLOCATABLE + CPU] - numbers[REQUESTED + CPU])
        model = fragmentation.model_group(self._devices.model_of(row))
        return WHOLE * len(free), sum(free), fragmentation.amount(level, tuple(sorted(free)), model)
