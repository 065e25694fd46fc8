"""Keeps pods off nodes that are too far from their users, and prefers near ones (LatencyAware).

    Filter   latency > hard limit, where it was measured within `freshFor`: refused
    Score    P0, spread over 0 to 100 among the nodes that fit

Limits are annotations of the pod; a pod without limits is not looked at. The latency of nodes comes from a
PromQL query that gives one number of milliseconds for each node. A node of which nothing fresh is known is never
refused, and counts as half as good as a near one. While a pod waits because all nodes are too far, it's tried again
when the next measurement is due.

P0 weighs few nodes in use, well used nodes and short latency against each other:

    P0 = w1·(1 − |E|/W) + w2·mean of u over E + w3·L

W are the nodes that the pod fits, E those of them with pods, u the dominant share of a node, all as they would be after
the placement on the node that is scored. L is 1 up to the soft limit, 0 from the hard one on, and linear between;
NEUTRAL where the latency isn't known, or the pod has no limit. So P0 lies within 0 and 1 where the weights add up to 1.

`consolidation` computes with NumPy or jax.numpy; arrays may have leading axes, and nodes are the last one.

The annotations with the limits are:

    podium.dev/latency-soft: 35ms      what the pod would like
    podium.dev/latency-hard: 100ms     what it can't do with more of

A value is a decimal number of milliseconds, or has one of the units us, ms and s. `latencySoftConstraint` and
`latencyHardConstraint`, milliseconds without a unit, count where ours are missing. A soft limit above the hard one
counts as equal to it. A value that can't be read, or isn't above 0, counts as missing, and `problem` says so.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from podium import (
    MAX_SCORE,
    SECOND,
    SKIP,
    Cycle,
    DependsOn,
    Duration,
    FieldError,
    FieldPath,
    Handle,
    Nodes,
    Plugin,
    Scores,
    Status,
    Verdict,
)
from podium.kube import Pod
from podium.load import NodeMatch, Series, SourceSettings, at_address, follow, source_errors

NAME: Final = "LatencyAware"
TOO_FAR: Final = "node(s) had a latency above the pod's hard limit"
DEFAULT_QUERY: Final = "1000 * avg by (instance) (probe_duration_seconds)"
"""Milliseconds: the blackbox exporter beside each node, asked for the users' address."""
_NOTE: Final = "podium_plugins.latency_aware"

Floats = NDArray[np.float64]
NEUTRAL: Final = 0.5
SOFT: Final = "podium.dev/latency-soft"
HARD: Final = "podium.dev/latency-hard"
ORIGINAL_SOFT: Final = "latencySoftConstraint"
ORIGINAL_HARD: Final = "latencyHardConstraint"
_VALUE: Final = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*(us|ms|s)?")
_MILLISECONDS: Final = {"us": 0.001, "ms": 1.0, "s": 1000.0, None: 1.0}
MOST_SHOWN: Final = 60


class ConsolidationWeights(NamedTuple):
    """w1, w2 and w3."""

    nodes: float = 1 / 3
    use: float = 1 / 3
    latency: float = 1 / 3


class LatencyAwareArgs(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    prometheus_address: str = ""
    """Prometheus' URL; short for `source.address`."""
    query: str = DEFAULT_QUERY
    """The PromQL expression that gives milliseconds, one number for each node."""
    node_label: str = ""
    """The label that names the node; empty: the first of several usual ones that does."""
    fresh_for: Duration = Duration(60 * SECOND)
    """How old a measurement may be to refuse a node."""
    nodes_weight: float = 1.0
    """How much it counts that few nodes are in use."""
    use_weight: float = 1.0
    """How much it counts that nodes in use are well used."""
    latency_weight: float = 1.0
    """How much a short latency counts."""
    source: SourceSettings = SourceSettings()
    """How Prometheus is asked: credentials, TLS, intervals."""

    def validate(self, path: FieldPath) -> Iterable[FieldError]:
        if not self.prometheus_address and not self.source.address and self.source.kind == "prometheus":
            yield FieldError.required(path.child("prometheusAddress"), "such as http://prometheus.monitoring:9090")
        else:
            yield from source_errors(self.prometheus_address, self.source, path)
        if not self.query.strip():
            detail = "the PromQL expression that gives milliseconds for each node"
            yield FieldError.required(path.child("query"), detail)
        if self.fresh_for <= 0:
            yield FieldError.invalid(path.child("freshFor"), str(self.fresh_for), "must be greater than zero")
        weights = {"nodesWeight": self.nodes_weight, "useWeight": self.use_weight, "latencyWeight": self.latency_weight}
        for name, weight in weights.items():
            if not (math.isfinite(weight) and weight >= 0):
                yield FieldError.invalid(path.child(name), weight, "must not be below zero")
        if not any(weights.values()):
            yield FieldError.invalid(path.child("latencyWeight"), self.latency_weight, "some weight must be above zero")

    @property
    def effective_source(self) -> SourceSettings:
        return at_address(self.prometheus_address, self.source)

    @property
    def weights(self) -> ConsolidationWeights:
        total = self.nodes_weight + self.use_weight + self.latency_weight
        return ConsolidationWeights(self.nodes_weight / total, self.use_weight / total, self.latency_weight / total)


class LatencyAware(Plugin):
    name = NAME
    trusted = True
    Args = LatencyAwareArgs
    depends_on = DependsOn(claims=False)

    def __init__(self, args: LatencyAwareArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        series = Series(source=args.effective_source, query=args.query, match=NodeMatch(label=args.node_label))
        self._readings = follow(handle, series)
        self._fresh_for = args.fresh_for.seconds
        self._refresh = args.effective_source.refresh_interval.seconds
        self._warned: set[str] = set()

    def answer_key(self, pod: Pod) -> Hashable:
        """Only that a pod has no limits can be kept: all else moves with the clock and with other nodes."""
        return None if limits_of(pod.annotations).any else ()

    def pre_filter(self, cycle: Cycle) -> Status | None:
        limits = self._limits(cycle)
        if limits.problem and cycle.pod.key not in self._warned and len(self._warned) < 1000:
            self._warned.add(cycle.pod.key)
            self.handle.report(f"pod {cycle.pod.key}: {limits.problem}")
        return SKIP if math.isnan(limits.hard) else None

    def filter(self, cycle: Cycle, nodes: Nodes) -> Verdict | None:
        hard = self._limits(cycle).hard
        too_far = self._latency(nodes) > hard
        if not too_far.any():
            return None
        self.handle.wake_at(cycle.pod, self.handle.clock.now() + self._refresh)
        return Verdict.reject(too_far, Status.unschedulable(TOO_FAR))

    def pre_score(self, cycle: Cycle, _nodes: Nodes) -> Status | None:
        return None if self._limits(cycle).any else SKIP

    def score(self, cycle: Cycle, nodes: Nodes) -> Scores:
        limits = self._limits(cycle)
        merit = latency_merit(np, self._latency(nodes), limits.soft, limits.hard)
        resources = nodes.cluster.resources
        offered = nodes.pick(resources.allocatable[:2]).astype(np.float64)
        requested = nodes.pick(resources.requested[:2]).astype(np.float64)
        before = (requested / np.maximum(offered, 1.0)).max(axis=0)
        after = ((requested + cycle.facts.counted[:2, np.newaxis]) / np.maximum(offered, 1.0)).max(axis=0)
        everywhere = np.ones(len(nodes), dtype=np.bool_)
        raw = consolidation(np, before, after, nodes.pod_count > 0, everywhere, merit, self.args.weights)
        return spread(raw)

    def _limits(self, cycle: Cycle) -> LatencyLimits:
        known: LatencyLimits | None = cycle.facts.notes.get(_NOTE)
        if known is None:
            known = cycle.facts.notes[_NOTE] = limits_of(cycle.pod.annotations)
        return known

    def _latency(self, nodes: Nodes) -> Floats:
        """float64[nodes]: milliseconds, NaN where nothing fresh is known."""
        readings, oldest = self._readings, self.handle.clock.now() - self._fresh_for
        column = nodes.pick(readings.column(nodes.cluster))
        if readings.times:
            fresh = np.array([readings.time_of(name) >= oldest for name in nodes.names])
            return np.where(fresh, column, np.nan)
        return column if readings.measured_at >= oldest else np.full(len(nodes), np.nan)


def spread(raw: Floats) -> Scores:
    """Scores from 0 for the lowest to 100 for the highest; all 100 where they are equal.

    >>> spread(np.array([0.2, 0.4, 0.3])).tolist(), spread(np.array([0.2, 0.2])).tolist()
    ([0, 100, 50], [100, 100])
    """
    low, high = raw.min(initial=np.inf), raw.max(initial=-np.inf)
    if not high - low > 1e-12:
        return np.full(len(raw), MAX_SCORE, dtype=np.int64)
    scores: Scores = np.rint(MAX_SCORE * (raw - low) / (high - low)).astype(np.int64)
    return scores


# Limits


class LatencyLimits(NamedTuple):
    """Milliseconds; NaN where there is no such limit."""

    soft: float = math.nan
    hard: float = math.nan
    problem: str = ""
    """What is wrong with the annotations; empty: nothing."""

    @property
    def any(self) -> bool:
        return not (math.isnan(self.soft) and math.isnan(self.hard))


NO_LIMITS: Final = LatencyLimits()


def limits_of(annotations: Mapping[str, str]) -> LatencyLimits:
    """The limits of a pod.

    >>> limits_of({"podium.dev/latency-soft": "35ms", "latencyHardConstraint": "100"})
    LatencyLimits(soft=35.0, hard=100.0, problem='')
    """
    if not annotations:
        return NO_LIMITS
    soft, soft_problem = _read(annotations, SOFT, ORIGINAL_SOFT)
    hard, hard_problem = _read(annotations, HARD, ORIGINAL_HARD)
    # `min` gives its first argument where either is NaN.
    return LatencyLimits(min(soft, hard), hard, soft_problem or hard_problem)


def _read(annotations: Mapping[str, str], *names: str) -> tuple[float, str]:
    name = next((each for each in names if each in annotations), None)
    if name is None:
        return math.nan, ""
    text = annotations[name].strip()
    found = _VALUE.fullmatch(text) if len(text) <= MOST_SHOWN else None
    number = math.nan if found is None else float(found[1]) * _MILLISECONDS[found[2]]
    if not (math.isfinite(number) and number > 0):
        shown = text[:MOST_SHOWN]
        return math.nan, f'the annotation {name} is {shown!r}, and must be a time such as "35ms"; it does not count'
    return number, ""


# P0


def latency_merit(xp: Any, latency: Any, soft: Any, hard: Any) -> Any:
    """L of each node; limits are `[…]`, NaN where there is none. With one limit, the other is taken to be equal."""
    soft, hard = xp.asarray(soft), xp.asarray(hard)
    low = xp.where(xp.isnan(soft), hard, soft)[..., None]
    high = xp.where(xp.isnan(hard), soft, hard)[..., None]
    width = high - low
    between = xp.clip((high - latency) / xp.where(width > 0, width, 1.0), 0.0, 1.0)
    merit = xp.where(latency <= low, 1.0, xp.where(width > 0, between, 0.0))
    return xp.where(xp.isnan(latency) | xp.isnan(high), NEUTRAL, merit)


def consolidation(
    xp: Any, before: Any, after: Any, has_pods: Any, mask: Any, merit: Any, weights: ConsolidationWeights
) -> Any:
    """P0 of each node; `before` and `after` are dominant shares, `mask` says where the pod fits."""
    filled = mask & has_pods
    used = xp.where(filled, before, 0.0)
    number = filled.sum(axis=-1)[..., None] + xp.where(filled, 0, 1)
    total = used.sum(axis=-1)[..., None] - used + after
    nodes = xp.maximum(mask.sum(axis=-1)[..., None], 1)
    return weights.nodes * (1.0 - number / nodes) + weights.use * total / number + weights.latency * merit
