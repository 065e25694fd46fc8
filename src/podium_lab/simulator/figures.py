"""Takes the figures of a run at its checkpoints: one row of numbers each, the same columns in every row.

Percentages of allocation are of what the present nodes offer. `arrived_pct` is the demand of all pods that have
arrived, as a share of what nodes offered at the start: of GPUs where there are any, else of CPU. CPU fragmentation is
the share of free CPU on nodes where a pod does not fit, averaged over the requests of the pods that arrived. Figures
of usage are of the last measurement, `overloaded_node_minutes` is a sum; `network_imbalance_pct` is the deviation of
traffic over nodes as a share of its mean. `reward_mean` is of all rewards so far, `reward_recent_pct` of those since
the last checkpoint. Where controllers were promised something, the last columns say what became
of that.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster
from podium_lab.simulator.gpu_figures import GpuFigures
from podium_lab.simulator.live_pods import LivePods
from podium_lab.simulator.pods import PodTemplate
from podium_lab.simulator.qos_figures import NO_FIGURES, QOS_COLUMNS, QosFigures
from podium_lab.simulator.rewards import RewardGiver
from podium_lab.simulator.timeline import EPOCH
from podium_lab.simulator.usage import UsageMeter

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
