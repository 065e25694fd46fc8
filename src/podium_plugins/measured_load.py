"""Prefers nodes under little pressure, by several metrics of Prometheus together (MeasuredLoad).

    share  of a metric on a node: 0 at its worst value, 1 at its best, ½ where all are equal
    points = round(10·Σ weight·share / Σ weight), over the metrics that are known of the node; score = 10·points

Each metric has a PromQL query that speaks of all nodes, or of all pods (`perPod`: what is measured of the pods on a
node is summed up, or the highest taken). The ends of its scale are given (`min`, `max`), or else are the lowest and the
highest value of all nodes. A metric that is not exported counts nowhere, so the default list has more than most
clusters have: pressure on cpu and memory, throttling, cache misses, network, disks.

Queries are run in the background (see `load.readings`). A node of which nothing is known gets the median of the
others; where nothing is known of any, all get the same.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from podium import SECOND, Duration, FieldError, FieldPath, Handle, PluginError, filled, rounded
from podium.load import (
    Better,
    GenerationCounter,
    Missing,
    NamedScorePlugin,
    NamedScores,
    NodeMatch,
    Series,
    SourceSettings,
    at_address,
    by,
    follow,
    rate,
    selector,
    source_errors,
    where_missing,
)

NAME = "MeasuredLoad"
VARIABLES = {"prometheus_address": "PROMETHEUS_ADDRESS"}
POINTS = 10
"""Points go from 0 to 10; each counts 10 in a score."""
UNKNOWN_POINTS = 5
"""The points of all nodes while nothing is known of any."""
VIRTUAL = "lo|veth.*|cali.*|cni.*|docker.*|flannel.*"
WINDOW = Duration(300 * SECOND)


class Metric(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    query: str = ""
    direction: Better = "lower"
    weight: float = 1.0
    min: float | None = None
    max: float | None = None
    node_label: str = ""
    """The label that names the node; empty: the first of several usual ones that does."""
    per_pod: Literal["sum", "max"] | None = None
    """The query speaks of pods, by the labels `namespace` and `pod`; what is theirs becomes their node's so."""

    def validate(self, path: FieldPath) -> Iterable[FieldError]:
        if not self.query.strip():
            yield FieldError.required(path.child("query"), "the PromQL expression that gives one number per node")
        if not (math.isfinite(self.weight) and self.weight > 0):
            yield FieldError.invalid(path.child("weight"), self.weight, "must be greater than zero")
        for name, end in (("min", self.min), ("max", self.max)):
            if end is not None and not math.isfinite(end):
                yield FieldError.invalid(path.child(name), end, "must be a finite number")
        if self.min is not None and self.max is not None and not self.min < self.max:
            yield FieldError.invalid(path.child("max"), self.max, "must be greater than min")
        if self.per_pod and self.node_label:
            yield FieldError.forbidden(path.child("nodeLabel"), "perPod finds the node by the pod")

    def series(self, source: SourceSettings) -> Series:
        match = NodeMatch(by="pod") if self.per_pod else NodeMatch(label=self.node_label)
        return Series(source=source, query=self.query, match=match, combine=self.per_pod or "max")


def _ratio(part: str, whole: str) -> str:
    """How much of one counter's growth is in another's, by whatever names the node."""
    return " / ".join(by("sum", "instance, node", rate(each, WINDOW)) for each in (part, whole))


def _both(*counters: str) -> str:
    return f"sum without (device) ({' + '.join(rate(each, WINDOW) for each in counters)})"


_RECEIVED, _SENT = (
    selector(f"node_network_{way}_bytes_total", unlike={"device": VIRTUAL}) for way in ("receive", "transmit")
)
_DISK_SECONDS = _both("node_disk_read_time_seconds_total", "node_disk_write_time_seconds_total")
_DISK_REQUESTS = _both("node_disk_reads_completed_total", "node_disk_writes_completed_total")

USUAL = (
    Metric(query=rate("node_pressure_cpu_waiting_seconds_total", WINDOW), min=0, max=1),
    Metric(query=rate("node_pressure_memory_waiting_seconds_total", WINDOW), min=0, max=1),
    Metric(query=_ratio("container_cpu_cfs_throttled_periods_total", "container_cpu_cfs_periods_total"), min=0, max=1),
    Metric(query=_ratio("node_perf_cache_misses_total", "node_perf_cache_refs_total"), min=0, max=1),
    Metric(query=_both(_RECEIVED, _SENT)),
    Metric(query=f"{_DISK_SECONDS} / {_DISK_REQUESTS}"),
)
"""What counts where no metrics are given: all equally, and the less the better."""


class MeasuredLoadArgs(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    prometheus_address: str | None = None
    source: SourceSettings = SourceSettings()
    """How Prometheus is asked: credentials, TLS, intervals."""
    metrics: tuple[Metric, ...] = USUAL
    missing: Missing = "neutral"

    def validate(self, path: FieldPath) -> Iterable[FieldError]:
        if self.source.kind != "prometheus":
            yield FieldError.invalid(path.child("source", "kind"), self.source.kind, "this plugin asks Prometheus")
        elif self.prometheus_address or self.source.address:
            yield from source_errors(self.prometheus_address, self.source, path)
        if not self.metrics:
            yield FieldError.required(path.child("metrics"), "what to measure, or leave it out for the usual ones")
        for number, metric in enumerate(self.metrics):
            yield from metric.validate(path.child("metrics").index(number))

    @property
    def effective_source(self) -> SourceSettings:
        return at_address(self.prometheus_address, self.source)


def shares(values: Mapping[str, float], metric: Metric) -> dict[str, float]:
    """Where each node stands between the worst (0) and the best (1).

    >>> shares({"a": 2.0, "b": 4.0, "c": 3.0}, Metric(query="x")), shares({"a": 2.0}, Metric(query="x", max=8))
    ({'a': 1.0, 'b': 0.0, 'c': 0.5}, {'a': 1.0})
    """
    if not values:
        return {}
    low = min(values.values()) if metric.min is None else metric.min
    high = max(values.values()) if metric.max is None else metric.max
    width = high / 2 - low / 2  # halved, because the difference of two large numbers may be too large for a number
    if width <= 0:
        return dict.fromkeys(values, 0.5)
    found = {name: min(max((value / 2 - low / 2) / width, 0.0), 1.0) for name, value in values.items()}
    return {name: 1 - share for name, share in found.items()} if metric.direction == "lower" else found


class MeasuredLoad(NamedScorePlugin):
    name = NAME
    trusted = True
    Args = MeasuredLoadArgs

    def __init__(self, args: MeasuredLoadArgs, handle: Handle) -> None:
        super().__init__(filled(args, VARIABLES), handle)
        source: SourceSettings = self.args.effective_source
        if not source.address:
            raise PluginError("set prometheusAddress, or environment variable PROMETHEUS_ADDRESS, to Prometheus' URL")
        generation = GenerationCounter()
        self._readings = [follow(handle, metric.series(source), generation) for metric in self.args.metrics]
        self.scores = NamedScores(generation, self._find)

    @property
    def unready(self) -> str | None:
        """What keeps it from scoring well: that Prometheus has not answered yet, to any query."""
        if any(readings.measured_at for readings in self._readings):
            return None
        problem = next((each.problem for each in self._readings if each.problem), "it has not been asked yet")
        return f"nothing has been measured yet: {problem}"

    def _find(self) -> tuple[dict[str, int], int]:
        known = self._combined()
        return known, where_missing(known, self.args.missing) if known else POINTS * UNKNOWN_POINTS

    def _combined(self) -> dict[str, int]:
        sums: dict[str, float] = {}
        weights: dict[str, float] = {}
        for metric, readings in zip(self.args.metrics, self._readings, strict=True):
            for name, share in shares(readings.values, metric).items():
                sums[name] = sums.get(name, 0.0) + metric.weight * share
                weights[name] = weights.get(name, 0.0) + metric.weight
        return {name: POINTS * rounded(POINTS * sums[name] / weights[name]) for name in sums}
