"""Fills nodes up to a cpu utilisation, and spreads beyond it (TargetLoadPacking).

    U = the node's measured cpu in percent; C = its cpu capacity; P = what the pod is predicted to use;
    M = the same of pods that the measurement cannot have shown (see `podium.load.recent_pods`)
    X = 100·(U/100·C + P + M)/C, 0 where C is 0
    X ≤ T: (100 − T)·X/T + T      T < X ≤ 100: T·(100 − X)/(100 − T)      X > 100: 0

A container is predicted to use its limit, else its request times a multiplier, else a default. Nodes that are not
measured score 0.

Decided otherwise than in the original: arguments are each profile's own, a target above 100 is refused (it would give
scores above 100), sidecars count with the app containers they run beside, and after a restart pods count by their own
times instead of all as new.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from typing import Any

import msgspec
import numpy as np

from podium import (
    MAX_SCORE,
    Cycle,
    DependsOn,
    FieldError,
    FieldPath,
    Handle,
    Int64,
    NodePart,
    Plugin,
    Scores,
    as_score,
    as_scores,
    rounded,
)
from podium.cluster import NodeInfo, Nodes, PodFacts
from podium.kube import Amount, Pod, QuantityError, milli
from podium.load import GenerationCounter, RecentPods, RowCache, Utilisation, UtilisationArgs, cpu_capacity, shared

NAME = "TargetLoadPacking"
DEFAULT_TARGET = 40


class TargetLoadPackingArgs(UtilisationArgs, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    target_utilization: Int64 = DEFAULT_TARGET
    default_requests: dict[str, Amount] = msgspec.field(default_factory=lambda: {"cpu": "1000m"})
    default_requests_multiplier: str = "1.5"

    def __post_init__(self) -> None:
        if self.target_utilization <= 0:
            msgspec.structs.force_setattr(self, "target_utilization", DEFAULT_TARGET)

    def validate(self, path: FieldPath) -> Iterator[FieldError]:
        yield from UtilisationArgs.validate(self, path)
        if self.target_utilization > MAX_SCORE:
            at = path.child("targetUtilization")
            yield FieldError.invalid(at, self.target_utilization, "must not be above 100, it is a percentage")
        try:
            milli(self.default_requests.get("cpu", 0))
        except QuantityError as error:
            yield FieldError.invalid(path.child("defaultRequests", "cpu"), self.default_requests["cpu"], str(error))
        given = self.default_requests_multiplier
        if _multiplier(given) is None:
            detail = "unable to parse DefaultRequestsMultiplier: it must be a number in quotes, 0 or more"
            yield FieldError.invalid(path.child("defaultRequestsMultiplier"), given, detail)


class TargetLoadPacking(Plugin):
    name = NAME
    trusted = True
    Args = TargetLoadPackingArgs
    depends_on = DependsOn(node=NodePart.PODS, claims=False)
    args: TargetLoadPackingArgs

    def __init__(self, args: TargetLoadPackingArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        source, multiplier = args.source(), _multiplier(args.default_requests_multiplier)
        if source is None or multiplier is None:
            raise ValueError("; ".join(str(error) for error in args.validate(FieldPath())))
        self._target = float(args.target_utilization)
        self._multiplier = multiplier
        self._default = milli(args.default_requests.get("cpu", 0))
        self._generation = GenerationCounter()
        self._cpu = Utilisation(handle, source, "CPU", self._generation)
        self._capacity = cpu_capacity()
        self._known = RowCache(handle.cluster, self._generation, self._find)
        self._recent = RecentPods(
            handle.cluster, handle.clock, self._generation, self._predicted, self._cpu.measured_until
        )

    def answer_key(self, _pod: Pod) -> Hashable:
        return self._generation.count

    def score(self, cycle: Cycle, nodes: Nodes) -> Scores:
        cluster = nodes.cluster
        used: Any = nodes.pick(self._cpu.mean(cluster))
        capacity = nodes.pick(self._capacity.over_rows(cluster)[0]).astype(np.float64)
        added: Any = float(self._predicted(cycle.pod, cycle.facts))
        if not nodes.bare:
            added = added + nodes.pick(self._recent.over_rows())
        target = self._target
        some = capacity > 0
        whole = np.where(some, capacity, 1.0)
        load = np.where(some, 100 * (used / 100 * capacity + added) / whole, 0.0)
        beyond = target * (100 - load) / (100 - target) if target < 100 else np.zeros_like(load)
        points = np.where(load <= target, (100 - target) * load / target + target, beyond)
        return as_scores(np.where((load > 100) | np.isnan(used), 0.0, points))

    def score_node(self, cycle: Cycle, node: NodeInfo) -> int:
        known = self._known.of(node.row)
        if known is None:
            return 0
        used, capacity = known
        target, load = self._target, 0.0
        if capacity > 0:
            added = self._predicted(cycle.pod, cycle.facts) + self._recent.totals[node.row]
            load = 100 * (used + added) / capacity
        if load > 100:
            return 0
        beyond = load > target
        return as_score(target * (100 - load) / (100 - target) if beyond else (100 - target) * load / target + target)

    def _find(self, rows: slice) -> list[tuple[float, float] | None]:
        """What nodes use of their capacity, None where that is not known."""
        self._recent.catch_up()
        cluster = self.handle.cluster
        used, capacity = self._cpu.mean(cluster)[rows], self._capacity.over_rows(cluster)[0, rows].astype(np.float64)
        both = zip((used / 100 * capacity).tolist(), shared(capacity.tolist()), strict=True)
        return [None if unknown else each for unknown, each in zip(np.isnan(used).tolist(), both, strict=True)]

    # What pods are predicted to use, in thousandths

    def _predicted(self, pod: Pod, facts: PodFacts) -> int:
        known: int | None = facts.notes.get(self)
        if known is None:
            known = facts.notes[self] = self._predict(pod)
        return known

    def _predict(self, pod: Pod) -> int:
        running = [*pod.spec.containers, *(each for each in pod.spec.init_containers if each.sidecar)]
        total = milli(pod.spec.overhead.get("cpu", 0))
        for container in running:
            limits, requests = container.resources.limits, container.resources.requests
            if "cpu" in limits:
                total += milli(limits["cpu"])
            elif "cpu" in requests:
                total += rounded(milli(requests["cpu"]) * self._multiplier)
            else:
                total += self._default
        return total


def _multiplier(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None
