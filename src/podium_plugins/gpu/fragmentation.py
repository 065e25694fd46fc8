"""Measures how much idle GPU the typical pods of a workload cannot use (ATC'23, "Beware of Fragmentation").

For a class m of pods on a node with `cpu` left and `free` left on each device, R in sum, the fragmented GPU is

    F(m) = R                          if m wants no GPU, or does not fit (cpu, devices, model; memory is not looked at)
         = Σ free where free < milli  if m fits

and of the node the mean of F(m) over the classes, weighted by their numbers of pods. Here it is that mean times the
number of typical pods, which is a whole number: the form for one node and the form for arrays agree exactly.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from podium_plugins.gpu.typical_pods import PodType

Amounts = NDArray[np.int64]
MOST_AMOUNTS = 200_000
"""So many amounts are remembered; then all are forgotten."""


class _Class:
    """Pods that differ in nothing but their cpu: sorted cpus, and how many pods ask for no more than each."""

    __slots__ = ("at_most", "at_most_column", "count", "cpus", "cpus_column", "milli", "models", "pods")

    def __init__(self, milli: int, count: int, models: tuple[str, ...], pods_by_cpu: dict[int, int]) -> None:
        self.milli, self.count, self.models = milli, count, models
        self.cpus = sorted(pods_by_cpu)
        self.at_most = [0, *accumulate(pods_by_cpu[cpu] for cpu in self.cpus)]
        self.pods = self.at_most[-1]
        self.cpus_column, self.at_most_column = np.array(self.cpus), np.array(self.at_most)


class Fragmentation:
    """The fragmentation that a workload sees; `pods` is its number of typical pods."""

    def __init__(self, workload: Iterable[PodType]) -> None:
        self.without_gpu = 0
        grouped: dict[tuple[int, int, tuple[str, ...]], dict[int, int]] = {}
        for cpu, request, pods in workload:
            if not request.gpus:
                self.without_gpu += pods
                continue
            by_cpu = grouped.setdefault((request.milli, request.gpus, request.models), {})
            by_cpu[cpu] = by_cpu.get(cpu, 0) + pods
        self._classes = [_Class(*shape, by_cpu) for shape, by_cpu in grouped.items()]
        self.pods = self.without_gpu + sum(each.pods for each in self._classes)
        self._cpus = sorted({cpu for each in self._classes for cpu in each.cpus})
        self._cpus_column = np.array(self._cpus, dtype=np.int64)
        self._names_models = any(each.models for each in self._classes)
        self._known: dict[tuple[int, str, tuple[int, ...]], int] = {}

    # One node

    def level(self, cpu: int) -> int:
        """Amounts of cpu of one level let the same classes through."""
        return bisect_right(self._cpus, cpu)

    def levels(self, cpu: Amounts) -> NDArray[np.intp]:
        """The same of many amounts."""
        return self._cpus_column.searchsorted(cpu, side="right")

    def model_group(self, model: str) -> str:
        """The model as far as it makes a difference."""
        return model if self._names_models else ""

    def amount(self, level: int, free: tuple[int, ...], model: str) -> int:
        """The fragmented GPU of one node times `pods`; `free` is sorted, `model` a model group."""
        key = level, model, free
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= MOST_AMOUNTS:
                self._known.clear()
            known = self._known[key] = self._amount(self._cpus[level - 1] if level else -1, free, model)
        return known

    def _amount(self, cpu: int, free: Sequence[int], model: str) -> int:
        sums = [0, *accumulate(free)]
        idle = sums[-1]
        if not idle:
            return 0
        amount = self.without_gpu * idle
        for each in self._classes:
            below = bisect_left(free, each.milli)
            fitting = 0
            if len(free) - below >= each.count and (not each.models or model in each.models):
                fitting = each.at_most[bisect_right(each.cpus, cpu)]
            amount += fitting * sums[below] + (each.pods - fitting) * idle
        return amount

    # Many nodes

    def amounts(self, cpu: Amounts, free: Amounts, has_model: Callable[[Sequence[str]], NDArray[np.bool_]]) -> Amounts:
        """The same of many nodes: cpu[nodes], free[devices, nodes]; `has_model` says which nodes have one of some
        models."""
        idle = free.sum(axis=0)
        amount: Amounts = self.pods * idle
        by_milli: dict[int, tuple[Amounts, Amounts]] = {}
        by_models: dict[tuple[str, ...], NDArray[np.bool_]] = {}
        for each in self._classes:
            if each.milli not in by_milli:
                enough = free >= each.milli
                by_milli[each.milli] = enough.sum(axis=0), (free * enough).sum(axis=0)
            number, usable = by_milli[each.milli]
            fits = number >= each.count
            if each.models:
                if each.models not in by_models:
                    by_models[each.models] = has_model(each.models)
                fits &= by_models[each.models]
            fitting = each.at_most_column[each.cpus_column.searchsorted(cpu, side="right")]
            fitting *= fits
            fitting *= usable
            amount -= fitting
        return amount
