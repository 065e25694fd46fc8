"""Takes the figures of a run at its checkpoints: one row of numbers each, the same columns in every row.

Percentages of allocation are of what the present nodes offer. `arrived_pct` is the demand of all pods that have
arrived, as a share of what nodes offered at the start: of GPUs where there are any, else of CPU. CPU fragmentation is
the share of free CPU on nodes where a pod does not fit, averaged over the requests of the pods that arrived. Figures
of usage are of the last measurement, `overloaded_node_minutes` is a sum; `network_imbalance_pct` is the deviation of
traffic over nodes as a share of its mean. `reward_mean` is of all rewards so far, `reward_recent_pct` of those since
the last checkpoint. Where controllers were promised something, the last columns say what became of that.

`GpuFigures` says how much of shared GPUs is allocated, and how much of the rest typical pods cannot use. Only the nodes
whose pods changed are looked at again, so that figures can be taken after every pod.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster
from podium.cluster.resources import ALLOCATABLE, CPU, REQUESTED
from podium_lab.simulator.live_pods import LivePods
from podium_lab.simulator.pods import PodTemplate
from podium_lab.simulator.qos_figures import NO_FIGURES, QOS_COLUMNS, QosFigures
from podium_lab.simulator.rewards import RewardGiver
from podium_lab.simulator.timeline import EPOCH
from podium_lab.simulator.usage import UsageMeter
from podium_plugins.gpu.devices import GpuDevices
from podium_plugins.gpu.fragmentation import Fragmentation
from podium_plugins.gpu.request import WHOLE
from podium_plugins.gpu.typical_pods import PodType

MOST_SHAPES = 64
"""Requests that fragmentation is averaged over: the first that came."""

COLUMNS = (
    "time_s",
    "arrived",
    "arrived_pct",
    "placed",
    "running",
    "pending",
    "ended",
    "dropped",
    "lost",
    "restarts",
    "preempted",
    "evictions",
    "nodes",
    "empty_nodes",
    "cpu_allocation_pct",
    "memory_allocation_pct",
    "cpu_fragmentation_pct",
    "gpu_allocation_pct",
    "gpu_fragmentation_of_total_pct",
    "gpu_fragmentation_of_idle_pct",
    "wait_mean_s",
    "wait_p50_s",
    "wait_p95_s",
    "wait_p99_s",
    "wait_max_s",
    "cpu_utilisation_pct",
    "cpu_utilisation_sd_pct",
    "cpu_utilisation_max_pct",
    "network_imbalance_pct",
    "overloaded_node_minutes",
    "reward_mean",
    "reward_recent_pct",
    *QOS_COLUMNS,
)
UNPLACED = "unplaced"
SUMMED_UP = (*COLUMNS, UNPLACED)
"""What a summary may show."""
WHOLE_NUMBERS = frozenset(name for name in COLUMNS if "_" not in name and name not in QOS_COLUMNS) | {"empty_nodes"}


class CheckpointFigures:
    """Collects the rows of one run."""

    def __init__(
        self,
        pods: LivePods,
        cluster: Cluster,
        gpus: GpuFigures | None,
        usage: UsageMeter | None,
        arrived_every: int | None,
        qos: QosFigures | None = None,
        rewards: RewardGiver | None = None,
    ) -> None:
        self._pods = pods
        self._cluster = cluster
        self._gpus = gpus
        self._usage = usage
        self._every = arrived_every
        self._qos = qos
        self._rewards = rewards
        self._cpu_capacity = max(1, int(cluster.resources.table(("cpu",), offered=True).sum()))
        self._cpu_arrived = 0
        self._shapes: dict[tuple[int, int], int] = {}
        self.rows: list[list[float]] = []
        self._percent = -1
        self._sums: list[float] = []
        self._records = 0

    def arrived(self, template: PodTemplate) -> None:
        """A pod has come; it is not yet decided."""
        self._cpu_arrived += template.cpu
        shape = (template.cpu, template.memory)
        if shape in self._shapes or len(self._shapes) < MOST_SHAPES:
            self._shapes[shape] = self._shapes.get(shape, 0) + 1
        if self._gpus is not None:
            self._gpus.arrived(template)
        if self._qos is not None:
            self._qos.arrived(template)

    @property
    def arrived_pct(self) -> float:
        if self._gpus is not None:
            return self._gpus.arrived_pct
        return 100 * self._cpu_arrived / self._cpu_capacity

    # By demand that has arrived

    def record(self) -> None:
        """Everything that arrived has been tried once: count that for its percent, where rows go by demand."""
        percent = math.floor(self.arrived_pct + 0.5)
        if percent != self._percent:
            self.close_percent()
            self._percent = percent
        gpu = (math.nan,) * 3 if self._gpus is None else self._gpus.percentages()
        sums = self._sums
        if not sums:
            self._sums = list(gpu)
        else:
            for i in 0, 1, 2:
                sums[i] += gpu[i]
        self._records += 1

    def close_percent(self, *, last: bool = False) -> None:
        """All pods of a percent have come: its row is the mean over them. A run has at least one row, its last."""
        wanted = self._every is not None and self._percent % self._every == 0
        if self._records and (wanted or (last and not self.rows)):
            row = self._row(0.0)
            row[COLUMNS.index("arrived_pct")] = float(self._percent)
            first = COLUMNS.index("gpu_allocation_pct")
            row[first : first + 3] = [each / self._records for each in self._sums]
            self.rows.append(row)
        self._sums, self._records = [], 0

    # By time

    def take(self, time: float) -> None:
        self.rows.append(self._row(time))

    def _row(self, time: float) -> list[float]:
        counts, cluster, usage = self._pods.counts, self._cluster, self._usage
        present = cluster.order.rows
        offered = cluster.resources.table(("cpu", "memory"), offered=True)[:, present]
        used = cluster.resources.table(("cpu", "memory"))[:, present]
        shares = 100 * used.sum(axis=1) / np.maximum(offered.sum(axis=1), 1)
        waits = counts.waits
        utilisation = None if usage is None or not len(usage.utilisation) else 100 * usage.utilisation
        return [
            time,
            counts.arrived,
            self.arrived_pct,
            counts.placed,
            counts.running,
            self._pods.pending,
            counts.ended,
            counts.dropped,
            counts.lost,
            counts.restarts,
            counts.preempted,
            counts.evictions,
            len(present),
            int(np.count_nonzero(cluster.resources.pod_count[present] == 0)),
            *shares.tolist(),
            self._fragmentation(offered - used),
            *((math.nan,) * 3 if self._gpus is None else self._gpus.percentages()),
            waits.mean,
            *waits.quantiles(0.5, 0.95, 0.99),
            waits.longest if waits.number else math.nan,
            *_of_nodes(utilisation, (np.mean, np.std, np.max)),
            math.nan if usage is None else usage.network_imbalance,
            math.nan if usage is None else usage.overloaded_minutes,
            *((math.nan, math.nan) if self._rewards is None else self._rewards.figures()),
            *self._promises(time, offered),
        ]

    def _promises(self, time: float, offered: NDArray[np.int64]) -> tuple[float, ...]:
        if self._qos is None:
            return NO_FIGURES
        now = EPOCH + time
        return *self._qos.report(now, self._pods.counts.preempted), self._qos.least_deficit(now, offered)

    def _fragmentation(self, free: np.ndarray[tuple[int, int], np.dtype[np.int64]]) -> float:
        free = np.maximum(free, 0)
        cpu = free[0]
        total = cpu.sum()
        if not total or not self._shapes:
            return math.nan
        shapes = np.array(list(self._shapes), dtype=np.int64)
        weights = np.array(list(self._shapes.values()), dtype=np.float64)
        fits = (free[0] >= shapes[:, :1]) & (free[1] >= shapes[:, 1:])
        unusable = np.where(fits, 0, cpu).sum(axis=1)
        return float(100 * (weights @ unusable) / weights.sum() / total)


def _of_nodes(
    values: np.ndarray[tuple[int], np.dtype[np.float64]] | None, figures: tuple[Callable[..., np.floating], ...]
) -> list[float]:
    return [math.nan if values is None else float(each(values)) for each in figures]


# Shared GPUs


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
