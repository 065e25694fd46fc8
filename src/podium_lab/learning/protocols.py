"""Runs the two protocols that policies are judged by, and takes their figures.

Static: pods arrive one by one up to 130 % of the GPUs and stay. The figure at a percent is the mean of the allocation
after each pod while the arrived demand, rounded, is that percent.

Churn: pods drawn from a list come as a Poisson stream that asks for `load` times the GPUs, and leave after their
lifetime (within 1 s and 6 h). At the start there is the population that would be there after long: pods drawn by
lifetime, with what is left of it drawn evenly, offered in random order until so much GPU is asked for. Six hours are
simulated, the first 30 % not counted. A pod that does not fit is dropped, or waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from podium_lab.learning.extra import LearningError
from podium_lab.learning.kernel import KernelPlan, KernelRun, Scorer, Workload, plan_of
from podium_lab.learning.kernel_state import Floats, KernelNode, KernelPod
from podium_lab.learning.lists import PodList, capacity_of, pod_spec, shuffled
from podium_plugins.gpu.request import WHOLE

HOURS = 6 * 3600.0
COUNTED_FROM = 0.3 * HOURS
SHORTEST, LONGEST = 1.0, HOURS
MOST_ARRIVALS = 5_000_000
TRAINED_PERCENTS = range(90, 131)
SIZES = ("cpu", "share", "1", "2", "4", "8+")
"""Pods by size, for what is rejected."""


def allocation_at(plan: KernelPlan, run: KernelRun, percents: Sequence[int]) -> dict[int, float]:
    """The allocation of a static run, in percent, at some percents of demand: the mean over the pods that arrived while
    the demand was that percent; where none did, what it was before."""
    capacity = sum(plan.capacity.values())
    arrived = np.floor(100 * np.cumsum(plan.gpu) / capacity + 0.5)
    used = 100 * np.cumsum(np.where(run.chosen >= 0, plan.gpu, 0)) / capacity
    found = {}
    for percent in percents:
        at = arrived == percent
        before = used[arrived < percent]
        found[percent] = float(used[at].mean()) if at.any() else float(before[-1]) if len(before) else 0.0
    return found


def static_figure(plan: KernelPlan, scorer: Scorer | str, ties: str, seed: int, workload: Workload) -> float:
    """What training maximises: the mean allocation from 90 to 130 % arrived."""
    run = KernelRun(plan, scorer, ties, seed)
    run.static(workload)
    return float(np.mean(list(allocation_at(plan, run, TRAINED_PERCENTS).values())))


class ChurnPlan(NamedTuple):
    """Pods that come and go."""

    plan: KernelPlan
    arrival: Floats
    lifetime: Floats


class ChurnFigures(NamedTuple):
    """What came of a churn run; shares in percent."""

    allocation: float
    rejected_gpu_time: float
    rejected_pods: float
    rejected_by_size: dict[str, float]
    """Rejected GPU-time (of pods without GPU: pods) of each size as a share of all that size asked for."""
    wait_mean: float
    wait_longest: float


def churn_plan(specs: Sequence[KernelNode], pods: PodList, seed: int, load: float) -> ChurnPlan:
    """The churn protocol of a seed."""
    if not pods.timed:
        raise LearningError(f"{pods.path}: has no deletion times, which the churn protocol needs; judge another list")
    rng = np.random.default_rng([seed, 0xC4])
    given = [pod_spec(pod) for pod in pods.pods]
    lifetime = np.clip([pod.lifetime for pod in given], SHORTEST, LONGEST)
    gpu = np.array([pod.request.total for pod in given])
    wanted = load * capacity_of(specs)
    mean = float((gpu * lifetime).mean())
    if not mean:
        raise LearningError(f"{pods.path}: has no pod that asks for GPUs; judge another list")
    if wanted / mean * HOURS > MOST_ARRIVALS:
        short = f"its pods live so shortly that more than {MOST_ARRIVALS:,} would come"
        raise LearningError(f"{pods.path}: {short}; look at creation_time and deletion_time")
    first: list[int] = []
    there = 0
    while there < wanted:
        drawn = rng.choice(len(given), 1000, p=lifetime / lifetime.sum())
        reached = int(np.searchsorted(there + np.cumsum(gpu[drawn]), wanted)) + 1
        first += drawn[:reached].tolist()
        there += int(gpu[drawn[:reached]].sum())
    left = lifetime[first] * rng.uniform(size=len(first))
    number = int(rng.poisson(wanted / mean * HOURS))
    arrival = np.sort(rng.uniform(0, HOURS, number))
    later = rng.integers(len(given), size=number)
    sequence: list[KernelPod] = [given[i] for i in (*first, *later.tolist())]
    return ChurnPlan(
        plan_of(shuffled(specs, seed), sequence),
        np.concatenate([np.zeros(len(first)), arrival]),
        np.concatenate([left, lifetime[later]]),
    )


def run_churn_plan(
    churn: ChurnPlan, scorer: Scorer | str, ties: str, seed: int, workload: Workload, *, queue: bool
) -> ChurnFigures:
    """One churn run."""
    run = KernelRun(churn.plan, scorer, ties, seed)
    capacity = sum(churn.plan.capacity.values())
    used = run.churn(churn.arrival, churn.lifetime, HOURS, COUNTED_FROM, queue, workload)
    counted = churn.arrival >= COUNTED_FROM
    lost = counted & (run.chosen < 0)
    work = churn.plan.gpu * churn.lifetime
    waited = run.waited[counted]
    return ChurnFigures(
        100 * used / capacity,
        _share(work[lost].sum(), work[counted].sum()),
        _share(lost.sum(), counted.sum()),
        _by_size(churn, counted, lost),
        float(waited.mean()) if queue else 0.0,
        float(waited.max(initial=0.0)),
    )


def _by_size(churn: ChurnPlan, counted: np.ndarray, lost: np.ndarray) -> dict[str, float]:
    gpu = churn.plan.gpu
    size = np.select([gpu == 0, gpu < WHOLE, gpu == WHOLE, gpu == 2 * WHOLE, gpu == 4 * WHOLE], [0, 1, 2, 3, 4], 5)
    weight = np.where(gpu == 0, 1.0, gpu * churn.lifetime)
    return {
        name: _share(weight[lost & (size == i)].sum(), weight[counted & (size == i)].sum())
        for i, name in enumerate(SIZES)
        if (counted & (size == i)).any()
    }


def _share(part: float, whole: float) -> float:
    return 100 * float(part) / float(whole) if whole else 0.0
