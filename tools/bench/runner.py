"""Runs and measures one workload in this process."""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from podium.config import Registry, SchedulerConfig
from tools.bench.loop import WorkloadRun
from tools.bench.operations import Step, WorkloadPlan
from tools.bench.thresholds import THRESHOLDS
from tools.bench.workload import Workload


class Measurement(msgspec.Struct, frozen=True):
    """What is reported of a workload; times in microseconds are per measured pod."""

    workload: str
    nodes: int
    nodes_scored: int
    """How many feasible nodes are ranked for one pod, at most."""
    pods: int
    scheduled: int
    pods_per_s: float
    p50_us: float
    p99_us: float
    peak_mb: float
    """The most memory the process has held, interpreter and all."""
    threshold: float | None = None
    """The pods a second that Kubernetes 1.37 requires of its own scheduler, at the workload's own size."""
    ratio: float | None = None
    """How many times the threshold was reached."""


def run_workload(
    workload: Workload,
    config: SchedulerConfig,
    registry: Registry,
    on_phase: Callable[[str], None] = lambda _phase: None,
    turn: Callable[[], None] | None = None,
) -> Measurement:
    """Run a workload; `turn` is called before each batch of measured pods, and its time is not counted."""
    on_phase("preparing")
    steps = _prepare(workload)
    run = WorkloadRun(config, registry, on_phase, turn)
    on_phase("filling the cluster")
    for step in steps:
        step(run)
    run.finish()
    scheduled = sum(run.is_bound(uid) for uid in run.spent)
    latencies = sorted(run.spent.values())
    pods_per_s = round(scheduled / (run.elapsed / 1e9), 1) if run.elapsed > 0 else 0.0
    threshold = THRESHOLDS.get(workload.name)
    return Measurement(
        workload=workload.name,
        nodes=run.nodes,
        nodes_scored=run.nodes_scored,
        pods=len(latencies),
        scheduled=scheduled,
        pods_per_s=pods_per_s,
        p50_us=round(percentile(latencies, 50) / 1e3, 1),
        p99_us=round(percentile(latencies, 99) / 1e3, 1),
        peak_mb=round(peak_memory() / 2**20, 1),
        threshold=threshold,
        ratio=None if threshold is None else round(pods_per_s / threshold, 2),
    )


def _prepare(workload: Workload) -> list[Step]:
    plan = WorkloadPlan(workload.sizes)
    steps: list[Step] = []
    for position, operation in enumerate(workload.operations):
        plan.position = position
        steps.append(operation.prepare(plan))
    return steps


def percentile(ordered: Sequence[int], percent: int) -> int:
    """The smallest value that so many percent do not exceed.

    >>> percentile([1, 2, 3, 4], 50), percentile([1, 2, 3, 4], 99)
    (2, 4)
    """
    return ordered[max(0, -(-len(ordered) * percent // 100) - 1)] if ordered else 0


def peak_memory() -> int:
    """Bytes. Linux tells it per program; what `getrusage` says may stem from the process this one was started by."""
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
