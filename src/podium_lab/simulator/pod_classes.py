"""Counts what became of the pods of each class: of one shape, priority, namespace, or value of a label.

A pod is in several classes, so pods are counted by all of their classes at once (a cell), and cells are added up when
the run is over: that costs a placement one more count, however many classes there are.

How long pods waited is counted in bins, whose number does not grow with the pods. A bin is 2 % wide from a millisecond
up, and one holds those that waited less. Mean and maximum are exact, quantiles are those of the bins, so at most 2 %
off.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium_lab.simulator.pods import PodClass, PodTemplate

COUNTS = (
    "arrived",
    "placed",
    "running",
    "pending",
    "ended",
    "dropped",
    "lost",
    "restarts",
    "preempted",
    "evictions",
)
CLASS_FIGURES = (*COUNTS, "wait_mean_s", "wait_p50_s", "wait_p95_s", "wait_p99_s", "wait_max_s")
SMALLEST = 0.001
GROWTH = math.log(1.02)
BINS = 1200
"""Up to some 250 days."""
MOST_CELLS = 500
"""Combinations of classes that are kept apart; pods of any other are counted in no class."""


class PodTallies:
    """How many pods came to what: those of the same classes, or all of a run."""

    __slots__ = (
        "arrived",
        "dropped",
        "ended",
        "evictions",
        "lost",
        "pending",
        "placed",
        "preempted",
        "restarts",
        "running",
        "waits",
    )

    def __init__(self) -> None:
        self.arrived = self.placed = self.ended = self.dropped = self.lost = 0
        self.restarts = self.preempted = self.evictions = self.running = self.pending = 0
        self.waits = WaitTimes()


class ClassResult(NamedTuple):
    """The figures of one class at the end of a run; NaN where one is not known."""

    by: str
    name: str
    figures: dict[str, float]

    def to_data(self) -> dict[str, Any]:
        """Plain values."""
        counts = {name: int(self.figures[name]) for name in COUNTS}
        waits = {name: _known(self.figures[name]) for name in CLASS_FIGURES[len(COUNTS) :]}
        return {"by": self.by, "class": self.name, **counts, **waits}


class PodClasses:
    """The cells of one run."""

    def __init__(self) -> None:
        self._cells: dict[tuple[PodClass, ...], PodTallies] = {}

    def of(self, template: PodTemplate) -> PodTallies:
        """Where pods of a template are counted."""
        cell = self._cells.get(template.classes)
        if cell is None:
            classes = template.classes if len(self._cells) < MOST_CELLS else ()
            cell = self._cells.setdefault(classes, PodTallies())
        return cell

    @property
    def untold(self) -> int:
        """Pods that are in no class, because there were too many combinations."""
        return self._cells[()].arrived if () in self._cells else 0

    def results(self) -> tuple[ClassResult, ...]:
        """The figures of all classes, in the order in which the first pod of each came."""
        members: dict[PodClass, list[PodTallies]] = {}
        for classes, cell in self._cells.items():
            for each in classes:
                members.setdefault(each, []).append(cell)
        return tuple(ClassResult(by, name, _figures(cells)) for (by, name), cells in members.items())


def _figures(cells: Iterable[PodTallies]) -> dict[str, float]:
    waits, counts = WaitTimes(), [0.0] * len(COUNTS)
    for cell in cells:
        waits.add_all(cell.waits)
        counts = [count + getattr(cell, name) for count, name in zip(counts, COUNTS, strict=True)]
    longest = waits.longest if waits.number else math.nan
    values = *counts, waits.mean, *waits.quantiles(0.5, 0.95, 0.99), longest
    return dict(zip(CLASS_FIGURES, values, strict=True))


def _known(value: float) -> float | None:
    return None if math.isnan(value) else round(value, 6)


class WaitTimes:
    """How many pods waited how long."""

    def __init__(self) -> None:
        self.counts = [0] * BINS
        self.number = 0
        self.total = 0.0
        self.longest = 0.0

    def add(self, seconds: float) -> None:
        self.number += 1
        if seconds < SMALLEST:
            self.counts[0] += 1
            return
        self.total += seconds
        self.longest = max(self.longest, seconds)
        self.counts[min(BINS - 1, 1 + int(math.log(seconds / SMALLEST) / GROWTH))] += 1

    def add_all(self, others: WaitTimes) -> None:
        """Pods that were counted elsewhere."""
        self.number += others.number
        self.total += others.total
        self.longest = max(self.longest, others.longest)
        self.counts = [mine + theirs for mine, theirs in zip(self.counts, others.counts, strict=True)]

    @property
    def mean(self) -> float:
        return self.total / self.number if self.number else math.nan

    def quantiles(self, *shares: float) -> list[float]:
        """The waits that so large a share of pods did not exceed; NaN before the first."""
        if not self.number:
            return [math.nan] * len(shares)
        reached = np.cumsum(self.counts)
        found = np.searchsorted(reached, [share * self.number for share in shares])
        return [min(self.longest, float(each)) for each in bin_ends()[np.minimum(found, BINS - 1)]]


def bin_ends() -> NDArray[np.float64]:
    """float64[bins]: the longest wait of each bin, 0 for the first."""
    ends: NDArray[np.float64] = SMALLEST * np.exp(GROWTH * np.arange(BINS))
    ends[0] = 0.0
    return ends
