"""Keeps pods off nodes that are too far from their users, and prefers near ones (LatencyAware).

    Filter   latency > hard limit, where it was measured within `freshFor`: refused
    Score    P0 of `consolidation`, spread over 0 to 100 among the nodes that fit

Limits are annotations of the pod (`limits`); a pod without limits is not looked at. The latency of nodes comes from a
PromQL query that gives one number of milliseconds for each node. A node of which nothing fresh is known is never
refused, and counts as half as good as a near one. While a pod waits because all nodes are too far, it's tried again
when the next measurement is due.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from typing import Final

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
    NodeInfo,
    Nodes,
    Plugin,
    Scores,
    Status,
    Verdict,
)
from podium.kube import Pod
from podium.load import NodeMatch, Series, SourceSettings, at_address, follow, source_errors
from podium_plugins.latency_aware.consolidation import ConsolidationWeights, consolidation, latency_merit
from podium_plugins.latency_aware.limits import LatencyLimits, limits_of

NAME: Final = "LatencyAware"
TOO_FAR: Final = "node(s) had a latency above the pod's hard limit"
DEFAULT_QUERY: Final = "1000 * avg by (instance) (probe_duration_seconds)"
"""Milliseconds: the blackbox exporter beside each node, asked for the users' address."""
_NOTE: Final = "podium_plugins.latency_aware"

Floats = NDArray[np.float64]


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

    def filter_node(self, cycle: Cycle, node: NodeInfo) -> Status | None:
        verdict = self.filter(cycle, Nodes(cycle.cluster, np.array([node.row], dtype=np.intp)))
        return None if verdict is None else Status.unschedulable(TOO_FAR)

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
