"""Provides counters and histograms that cost the scheduler next to nothing.

prometheus-client's own take 0.7 µs for each observation, and a pod makes about twenty. Here an observation is an append
to a list, sorted into buckets by the thousand or at a scrape (0.05 µs in all), and only then made into
prometheus-client's families: its exposition and its formats are used, its locks are not. They belong to one event loop,
and code that observes must `fold` now and then, or else `record`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

MOST_GATHERED = 1000

Labels = tuple[str, ...]
Reading = float | Mapping[Labels, float]
"""A number, or one for each combination of label values."""


class MetricFamily(Protocol):
    name: str

    def collect(self) -> Metric: ...


def exponential(start: float, factor: float, count: int) -> list[float]:
    """Bucket bounds, multiplied up one by one: the same floats that kube-scheduler arrives at."""
    return list(accumulate([start] + [factor] * (count - 1), lambda bound, by: bound * by))


class Histogram:
    """One histogram. To observe a value is to append it to a list; `fold` sorts what has gathered into the buckets."""

    __slots__ = ("_bounds", "_gathered", "counts", "observe", "total")

    def __init__(self, bounds: NDArray[np.float64]) -> None:
        self._bounds = bounds
        self._gathered: list[float] = []
        self.observe: Callable[[float], None] = self._gathered.append
        self.counts = np.zeros(len(bounds) + 1, dtype=np.int64)
        self.total = 0.0

    def record(self, value: float) -> None:
        """Observe where nothing calls `fold`."""
        self._gathered.append(value)
        if len(self._gathered) >= MOST_GATHERED:
            self.fold()

    def fold(self) -> None:
        if self._gathered:
            values = np.array(self._gathered, dtype=np.float64)
            self._gathered.clear()
            self.counts += np.bincount(np.searchsorted(self._bounds, values), minlength=len(self.counts))
            self.total += float(values.sum())

    @property
    def count(self) -> int:
        self.fold()
        return int(self.counts.sum())


class Histograms:
    """A family of histograms, one for each combination of label values; shown once it has been observed.

    A family without labels is shown from the start, unless it is `hidden_while_empty`.
    """

    def __init__(
        self,
        name: str,
        text: str,
        bounds: Sequence[float],
        labels: Labels = (),
        *,
        hidden_while_empty: bool = False,
    ) -> None:
        self.name = name
        self._from_the_start = not labels and not hidden_while_empty
        self._text = text
        self._labels = labels
        self._bounds = np.array(bounds, dtype=np.float64)
        self._le = [*(repr(bound).removesuffix(".0") for bound in bounds), "+Inf"]
        self._children: dict[Labels, Histogram] = {} if labels else {(): Histogram(self._bounds)}

    def of(self, *values: str) -> Histogram:
        child = self._children.get(values)
        if child is None:
            child = self._children[values] = Histogram(self._bounds)
        return child

    def collect(self) -> Metric:
        metric = HistogramMetricFamily(self.name, self._text, labels=self._labels)
        for values, child in self._children.items():
            if child.count or self._from_the_start:
                buckets = zip(self._le, child.counts.cumsum().tolist(), strict=True)
                metric.add_metric(values, list(buckets), child.total)
        return metric

    def counted(self) -> dict[Labels, float]:
        """How many observations each combination of label values has."""
        return {values: child.count for values, child in self._children.items() if child.count}

    def fold(self) -> None:
        for child in self._children.values():
            child.fold()


class Counters:
    """A family of counters, one for each combination of label values."""

    def __init__(self, name: str, text: str, labels: Labels = ()) -> None:
        self.name = name
        self._text = text
        self._labels = labels
        self._values: dict[Labels, float] = {} if labels else {(): 0.0}

    def add(self, *values: str) -> None:
        self._values[values] = self._values.get(values, 0.0) + 1.0

    def counted(self) -> Mapping[Labels, float]:
        return self._values

    def collect(self) -> Metric:
        return counters(self.name, self._text, self._labels, self._values)


class ReadFamily:
    """A family whose numbers live elsewhere and are read at a scrape."""

    def __init__(
        self,
        make: Callable[[str, str, Labels, Reading], Metric],
        name: str,
        text: str,
        read: Callable[[], Reading],
        labels: Labels = (),
    ) -> None:
        self.name = name
        self._make = make
        self._text = text
        self._read = read
        self._labels = labels

    def collect(self) -> Metric:
        return self._make(self.name, self._text, self._labels, self._read())


class Collector:
    """Gives a registry the families that have something to show."""

    def __init__(self, families: Iterable[MetricFamily]) -> None:
        self._families = families

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterator[Metric]:
        names: set[str] = set()
        for family in self._families:
            metric = family.collect()
            if metric.samples and metric.name not in names:  # Prometheus refuses an answer with a name twice
                names.add(metric.name)
                yield metric


def counters(name: str, text: str, labels: Labels, reading: Reading) -> Metric:
    metric = CounterMetricFamily(name.removesuffix("_total"), text, labels=labels)
    for values, value in _readings(reading):
        metric.add_metric(values, value)
    return metric


def gauges(name: str, text: str, labels: Labels, reading: Reading) -> Metric:
    metric = GaugeMetricFamily(name, text, labels=labels)
    for values, value in _readings(reading):
        metric.add_metric(values, value)
    return metric


def _readings(reading: Reading) -> Iterable[tuple[Labels, float]]:
    return reading.items() if isinstance(reading, Mapping) else [((), reading)]
