"""LowRiskOverCommitment: prefers nodes where pods are least likely to want more than there is.

Two risks, for cpu and for memory, each between 0 and 1:

- of limits: with the pod placed, how far limits reach beyond the node, (limits − offer)/(limits − requests);
- of load: how likely measured load exceeds what the pods there have requested, by a Beta distribution fitted to the
  measured mean and deviation (this pod not counted in), given that load stays below limits.

    risk = w·limits + (1 − w)·load;   score = 100·(1 − the higher risk)

Deviations are of averages, so they are widened by √smoothingWindowSize. Pods that ask for nothing and nodes that are
not measured score 0. What pods ask for are Kubernetes' own sums, with sidecars. The smallest deviation that is told
from none is 10⁻¹⁵, below that a share cannot be computed with.
"""

from __future__ import annotations

import math
from collections.abc import Hashable

import msgspec
import numpy as np

from podium.cluster import Cluster, NodeInfo, Nodes
from podium.config.types import Int64
from podium.framework import Cycle, Handle, Plugin, Scope, Scores
from podium.framework.commitment import Commitment, commitment_of
from podium.framework.load import mark_of
from podium.framework.load_risk import Amounts, LoadRisk, load_risk
from podium.framework.rounding import Floats, as_score, as_scores
from podium.framework.row_numbers import RowNumbers
from podium.framework.watched_load import Utilisation, WatchedLoadArgs
from podium.kube import Pod

NAME = "LowRiskOverCommitment"
DEFAULT_WINDOW = 5
DEFAULT_WEIGHT = 0.5
RESOURCES = ("cpu", "memory")


class LowRiskOverCommitmentArgs(WatchedLoadArgs, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    smoothing_window_size: Int64 = DEFAULT_WINDOW
    risk_limit_weights: dict[str, float] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.smoothing_window_size <= 0:
            msgspec.structs.force_setattr(self, "smoothing_window_size", DEFAULT_WINDOW)
        given = {**dict.fromkeys(RESOURCES, DEFAULT_WEIGHT), **self.risk_limit_weights}
        weights = {name: weight if 0 <= weight <= 1 else DEFAULT_WEIGHT for name, weight in given.items()}
        msgspec.structs.force_setattr(self, "risk_limit_weights", weights)


class LowRiskOverCommitment(Plugin):
    name = NAME
    Args = LowRiskOverCommitmentArgs
    score_scope = Scope.PODS
    sees_claims = False
    args: LowRiskOverCommitmentArgs

    def __init__(self, args: LowRiskOverCommitmentArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        source = args.checked_source()
        self._measured = [
            Utilisation(handle, source, resource, ("AVG", "Latest", "")) for resource in ("CPU", "Memory")
        ]
        self._weights = [args.risk_limit_weights[resource] for resource in RESOURCES]
        self._widening = math.sqrt(args.smoothing_window_size)
        self._readings = [readings for each in self._measured for readings in each.readings]
        self._offered = RowNumbers(2, _offered_by, pods=False)
        self._committed = RowNumbers(4, _committed_on, pods=True)
        self._load_risks = [LoadRisk(), LoadRisk()]

    def watermark(self, _pod: Pod) -> Hashable:
        return mark_of(self._readings)

    def score(self, cycle: Cycle, nodes: Nodes) -> Scores:
        wanted = commitment_of(cycle.pod, cycle.facts)
        if not any(wanted):
            return np.zeros(len(nodes), dtype=np.int64)
        cluster = nodes.cluster
        if nodes.bare:
            committed = np.zeros((4, cluster.columns.rows), dtype=np.int64)
        else:
            committed = self._committed.over_rows(cluster)
        highest: Floats = np.zeros(len(nodes), dtype=np.float64)
        measured = np.zeros(len(nodes), dtype=np.bool_)
        for i, resource in enumerate(RESOURCES):
            mean, deviation = self._measured[i].mean(cluster), self._measured[i].deviation(cluster)
            offer = cluster.resources.allocatable_of(resource)
            by_load = self._load_risks[i].over_rows(
                mean, deviation * self._widening, committed[i], committed[i + 2], offer
            )
            by_limits = _limit_risks(nodes.pick(committed[i::2]), nodes.pick(offer), wanted[i], wanted[i + 2])
            weight = self._weights[i]
            risk = np.clip(weight * by_limits + (1 - weight) * nodes.pick(by_load), 0.0, 1.0)
            highest = np.maximum(highest, risk)
            measured |= nodes.pick(~(np.isnan(mean) & np.isnan(deviation)))
        return as_scores(np.where(measured, 100 * (1 - highest), 0.0))

    def score_node(self, cycle: Cycle, node: NodeInfo) -> int:
        wanted = commitment_of(cycle.pod, cycle.facts)
        if not any(wanted):
            return 0
        row, name = node.row, node.name
        committed, offers = self._committed.on(cycle.cluster, row), self._offered.on(cycle.cluster, row)
        highest, known = 0.0, False
        for i, measured in enumerate(self._measured):
            mean, deviation = measured.mean_on(name), measured.deviation_on(name)
            requests, limits, offer = committed[i], committed[i + 2], offers[i]
            risk = 0.0
            if mean is not None or deviation is not None:
                known = True
                widened = (deviation or 0.0) * self._widening
                risk = (1 - self._weights[i]) * load_risk(mean or 0.0, widened, requests, limits, offer)
            limits += wanted[i + 2]
            if limits > offer:
                risk = self._weights[i] * _limit_risk(requests + wanted[i], limits, offer) + risk
            if risk > highest:
                highest = min(1.0, risk)
        return as_score(100 * (1 - highest)) if known else 0


def _committed_on(cluster: Cluster, row: int) -> Commitment:
    """The sums over the pods of a row."""
    cpu = memory = cpu_limit = memory_limit = 0
    for placed in cluster.pods_on[row].values():
        each = commitment_of(placed.pod, placed.facts)
        cpu += each[0]
        memory += each[1]
        cpu_limit += each[2]
        memory_limit += each[3]
    return Commitment(cpu, memory, cpu_limit, memory_limit)


def _offered_by(cluster: Cluster, row: int) -> list[int]:
    return [int(cluster.resources.allocatable_of(resource)[row]) for resource in RESOURCES]


def _limit_risk(requests: int, limits: int, offer: int) -> float:
    """Of limits above the offer; others are no risk."""
    return float(limits - offer) / float(limits - min(requests, offer))


def _limit_risks(committed: Amounts, offer: Amounts, request: int, limit: int) -> Floats:
    """The same for arrays; `committed` are the lines of requests and of limits."""
    requests, limits = committed[0] + request, committed[1] + limit
    over = limits > offer
    room = np.where(over, limits - np.minimum(requests, offer), 1)
    risks: Floats = np.where(over, (limits - offer).astype(np.float64) / room.astype(np.float64), 0.0)
    return risks
