"""Prefers nodes where pods are least likely to want more than there is (LowRiskOverCommitment).

Two risks, for cpu and for memory, each between 0 and 1:

- of limits: with the pod placed, how far limits reach beyond the node, (limits − offer)/(limits − requests);
- of load: how likely measured load exceeds what the pods there have requested, by a Beta distribution fitted to the
  measured mean and deviation (this pod not counted in), given that load stays below limits.

    risk = w·limits + (1 − w)·load;   score = 100·(1 − the higher risk)

Deviations are of averages, so they are widened by √smoothingWindowSize. Pods that ask for nothing and nodes that are
not measured score 0. What pods ask for are Kubernetes' own sums, with sidecars. The smallest deviation that differs
from none is 10⁻¹⁵, below that a share cannot be computed with.
"""

from __future__ import annotations

import math
from collections.abc import Hashable

import msgspec
import numpy as np

from podium import MAX_SCORE, Cycle, DependsOn, Handle, Int64, NodePart, Plugin, Scores, as_score, as_scores
from podium.cluster import ALLOCATABLE, REQUESTED, NodeInfo, Nodes
from podium.kube import Pod
from podium.load import (
    NO_OVERCOMMITMENT,
    Amounts,
    Floats,
    GenerationCounter,
    LoadRisk,
    Overcommitted,
    RowCache,
    Utilisation,
    UtilisationArgs,
    commitment_of,
    load_risk,
    risk_bounds,
    shared,
)

NAME = "LowRiskOverCommitment"
DEFAULT_WINDOW = 5
DEFAULT_WEIGHT = 0.5
RESOURCES = ("cpu", "memory")

KnownOfRow = tuple[int, int, int, int] | None
"""Of cpu and memory the requests from which on load is no risk, then those below which it surely exceeds them (see
`podium.load.risk.risk_bounds`); None where the node is not measured."""


class LowRiskOverCommitmentArgs(UtilisationArgs, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
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
    trusted = True
    Args = LowRiskOverCommitmentArgs
    depends_on = DependsOn(node=NodePart.PODS, claims=False)
    args: LowRiskOverCommitmentArgs

    def __init__(self, args: LowRiskOverCommitmentArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        source = args.checked_source()
        self._generation = GenerationCounter()
        self._measured = [
            Utilisation(handle, source, resource, self._generation, ("AVG", "Latest", ""), deviation=True)
            for resource in ("CPU", "Memory")
        ]
        self._weights = [args.risk_limit_weights[resource] for resource in RESOURCES]
        self._widening = math.sqrt(args.smoothing_window_size)
        self._known = RowCache(handle.cluster, self._generation, self._find)
        self._overcommitted = Overcommitted(handle.cluster)
        self._load_risks = [LoadRisk(), LoadRisk()]

    def answer_key(self, _pod: Pod) -> Hashable:
        return self._generation.count

    def score(self, cycle: Cycle, nodes: Nodes) -> Scores:
        wanted = commitment_of(cycle.pod, cycle.facts)
        if not any(wanted):
            return np.zeros(len(nodes), dtype=np.int64)
        cluster = nodes.cluster
        requests, excess = cluster.resources.table(RESOURCES), self._overcommitted.over_rows()
        if nodes.bare:
            requests, excess = np.zeros_like(requests), np.zeros_like(excess)
        highest: Floats = np.zeros(len(nodes), dtype=np.float64)
        measured = np.zeros(len(nodes), dtype=np.bool_)
        for i, resource in enumerate(RESOURCES):
            mean, deviation = self._measured[i].mean(cluster), self._measured[i].deviation(cluster)
            offer = cluster.resources.allocatable_of(resource)
            limits = requests[i] + excess[i]
            by_load = self._load_risks[i].over_rows(mean, deviation * self._widening, requests[i], limits, offer)
            by_limits = _limit_risks(
                nodes.pick(requests[i]) + wanted[i], nodes.pick(limits) + wanted[i + 2], nodes.pick(offer)
            )
            weight = self._weights[i]
            risk = np.clip(weight * by_limits + (1 - weight) * nodes.pick(by_load), 0.0, 1.0)
            highest = np.maximum(highest, risk)
            measured |= nodes.pick(~(np.isnan(mean) & np.isnan(deviation)))
        return as_scores(np.where(measured, 100 * (1 - highest), 0.0))

    def score_node(self, cycle: Cycle, node: NodeInfo) -> int:
        row = node.row
        known, wanted = self._known.of(row), commitment_of(cycle.pod, cycle.facts)
        if known is None or not any(wanted):
            return 0
        numbers, excess = cycle.cluster.resources.on(row), self._overcommitted.on(row)
        cpu, memory = numbers[REQUESTED], numbers[REQUESTED + 1]
        if (
            excess is NO_OVERCOMMITMENT
            and cpu >= known[0]
            and memory >= known[1]
            and cpu + wanted[2] <= numbers[ALLOCATABLE]
            and memory + wanted[3] <= numbers[ALLOCATABLE + 1]
        ):
            return MAX_SCORE  # no risk of either kind, which is common and quickly seen
        highest = 0.0
        for i in 0, 1:
            requests, offer, more, risk = numbers[REQUESTED + i], numbers[ALLOCATABLE + i], excess[i], 0.0
            if more or requests < known[i]:
                by_load = 1.0
                if requests >= known[i + 2] or not requests + more:
                    by_load = self._load_risk(i, node.name, requests, requests + more, offer)
                risk = (1 - self._weights[i]) * by_load
            limits = requests + more + wanted[i + 2]
            if limits > offer:
                risk = self._weights[i] * _limit_risk(requests + wanted[i], limits, offer) + risk
            highest = max(highest, min(1.0, risk))
        return as_score(100 * (1 - highest))

    def _load_risk(self, i: int, name: str, requests: int, limits: int, offer: int) -> float:
        mean, deviation = self._measured[i].mean_on(name), self._measured[i].deviation_on(name)
        return load_risk(mean or 0.0, (deviation or 0.0) * self._widening, requests, limits, offer)

    def _find(self, rows: slice) -> list[KnownOfRow]:
        cluster, known, lines = self.handle.cluster, [], []
        for measured, resource in zip(self._measured, RESOURCES, strict=True):
            mean, deviation = measured.mean(cluster)[rows], measured.deviation(cluster)[rows]
            known.append(~(np.isnan(mean) & np.isnan(deviation)))
            offer = cluster.resources.allocatable_of(resource)[rows]
            lines.append(np.ceil(risk_bounds(mean, deviation * self._widening) * offer).astype(np.int64))
        bounds = shared(zip(*np.concatenate(lines)[[0, 2, 1, 3]].tolist(), strict=True))
        some: list[bool] = (known[0] | known[1]).tolist()
        return [each if measured else None for measured, each in zip(some, bounds, strict=True)]


def _limit_risk(requests: int, limits: int, offer: int) -> float:
    """Of limits above the offer; others are no risk."""
    return float(limits - offer) / float(limits - min(requests, offer))


def _limit_risks(requests: Amounts, limits: Amounts, offer: Amounts) -> Floats:
    """The same for arrays."""
    over = limits > offer
    room = np.where(over, limits - np.minimum(requests, offer), 1)
    risks: Floats = np.where(over, (limits - offer).astype(np.float64) / room.astype(np.float64), 0.0)
    return risks
