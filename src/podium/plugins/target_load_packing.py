"""TargetLoadPacking: fills nodes up to a cpu utilisation, and spreads beyond it.

    U = the node's measured cpu in percent; C = its cpu capacity; P = what the pod is predicted to use;
    M = the same of pods that the measurement cannot have shown (see `framework.recent_pods`)
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

from podium.cluster import NodeInfo, Nodes, PlacedPod
from podium.config.field import FieldError, FieldPath
from podium.config.types import Int64
from podium.framework import MAX_SCORE, Cycle, Handle, Plugin, Resource, Scope, Scores
from podium.framework.capacity import cpu_capacity
from podium.framework.recent_pods import RecentPods
from podium.framework.rounding import as_score, as_scores, rounded
from podium.framework.watched_load import Utilisation, WatchedLoadArgs
from podium.kube import Amount, Pod
from podium.kube.quantity import QuantityError, milli

NAME = "TargetLoadPacking"
DEFAULT_TARGET = 40


class TargetLoadPackingArgs(WatchedLoadArgs, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    target_utilization: Int64 = DEFAULT_TARGET
    default_requests: dict[str, Amount] = msgspec.field(default_factory=lambda: {"cpu": "1000m"})
    default_requests_multiplier: str = "1.5"

    def __post_init__(self) -> None:
        if self.target_utilization <= 0:
            msgspec.structs.force_setattr(self, "target_utilization", DEFAULT_TARGET)

    def validate(self, path: FieldPath) -> Iterator[FieldError]:
        yield from WatchedLoadArgs.validate(self, path)
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
    Args = TargetLoadPackingArgs
    score_scope = Scope.PODS
    sees_claims = False
    args: TargetLoadPackingArgs

    def __init__(self, args: TargetLoadPackingArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        source, multiplier = args.source(), _multiplier(args.default_requests_multiplier)
        if source is None or multiplier is None:
            raise ValueError("; ".join(str(error) for error in args.validate(FieldPath())))
        self._target = float(args.target_utilization)
        self._multiplier = multiplier
        self._default = milli(args.default_requests.get("cpu", 0))
        self._cpu = Utilisation(handle, source, "CPU")
        self._capacity = cpu_capacity()
        self._recent = RecentPods(handle.clock, self._predicted_of, self._cpu.measured_until)

    def watermark(self, _pod: Pod) -> Hashable:
        return self._cpu.mark + self._recent.revision  # both only grow

    def observe(self, resource: str, before: Any, after: Any) -> None:
        if resource == Resource.POD:
            self._recent.observe(self.handle.cluster, before, after)

    def score(self, cycle: Cycle, nodes: Nodes) -> Scores:
        cluster = nodes.cluster
        used: Any = nodes.pick(self._cpu.mean(cluster))
        capacity = nodes.pick(self._capacity.over_rows(cluster)[0]).astype(np.float64)
        added: Any = float(self._predicted(cycle))
        if not nodes.bare:
            added = added + nodes.pick(self._recent.over_rows(cluster, self._cpu.mark))
        target = self._target
        some = capacity > 0
        whole = np.where(some, capacity, 1.0)
        load = np.where(some, 100 * (used / 100 * capacity + added) / whole, 0.0)
        beyond = target * (100 - load) / (100 - target) if target < 100 else np.zeros_like(load)
        points = np.where(load <= target, (100 - target) * load / target + target, beyond)
        return as_scores(np.where((load > 100) | np.isnan(used), 0.0, points))

    def score_node(self, cycle: Cycle, node: NodeInfo) -> int:
        used = self._cpu.mean_on(node.name)
        if used is None:
            return 0
        capacity = float(self._capacity.on(cycle.cluster, node.row)[0])
        recent = self._recent.on(cycle.cluster, node.row, self._cpu.mark)
        target, load = self._target, 0.0
        if capacity > 0:
            load = 100 * (used / 100 * capacity + (float(self._predicted(cycle)) + recent)) / capacity
        if load > 100:
            return 0
        if load <= target:
            return as_score((100 - target) * load / target + target)
        return as_score(target * (100 - load) / (100 - target))

    # What pods are predicted to use, in thousandths

    def _predicted(self, cycle: Cycle) -> int:
        return self._noted(cycle.pod, cycle.facts.notes)

    def _predicted_of(self, placed: PlacedPod) -> int:
        return self._noted(placed.pod, placed.facts.notes)

    def _noted(self, pod: Pod, notes: dict[object, Any]) -> int:
        known: int | None = notes.get(self)
        if known is None:
            known = notes[self] = self._predict(pod)
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
