"""Counts how many pods of a PodDisruptionBudget may be evicted now.

    disruptionsAllowed = currentHealthy − desiredHealthy, never below 0 and 0 while no pods are expected

With a number as minAvailable the pods that match are those expected; with maxUnavailable or a percentage it is the
scale of their controllers. Who evicts a pod notes it in `disruptedPods`, and it no longer counts as healthy; if it is
still there after two minutes, it does again.
"""

from __future__ import annotations

from collections.abc import Sequence

from podium.kube.json_object import JsonObject
from podium.workloads.budgets import scaled
from podium_cluster.apiserver.store.collection import ObjectChange
from podium_cluster.controllers.context import ControllerContext, key_of, number
from podium_cluster.controllers.ownership import controller_of, selector_of
from podium_cluster.controllers.pods import Key, PodView, seconds

DELETION_SECONDS = 120.0
SETTLE_SECONDS = 0.05
SCALED = ("ReplicaSet", "ReplicationController", "StatefulSet", "Deployment")


class DisruptionBudgets:
    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._recorder = context.recorder("controllermanager")
        self._lane = context.lane("PodDisruptionBudget", self.sync)
        context.watch("PodDisruptionBudget", self._budget_changed)
        context.watch_pods(self._pod_changed)
        for kind in SCALED:
            context.watch(kind, self._owner_changed)

    def sync(self, key: Key) -> None:
        budget = self._context.get("PodDisruptionBudget", *key)
        if budget is None:
            return
        selector = selector_of(budget["spec"])
        pods = [pod for pod in self._context.pods.in_namespace(key[0]) if selector.matches(pod.metadata.labels)]
        if not pods:
            self._recorder.normal(budget, "NoPods", "No matching pods found")
        expected, desired = self._expected(budget, pods)
        if expected is None:
            self._fail(budget, desired)
            return
        now = self._context.now()
        disrupted = _still_disrupted(budget, pods, now)
        healthy = sum(pod.ready and not pod.terminating and pod.name not in disrupted for pod in pods)
        status = status_of(budget, healthy, int(desired), expected, disrupted, self._context.timestamp())
        if status != budget.get("status"):
            self._context.update_status("PodDisruptionBudget", budget, status)
        if disrupted:
            soonest = min(seconds(time) or now for time in disrupted.values())
            self._lane.add_after(key, max(0.001, soonest + DELETION_SECONDS - now))

    def _expected(self, budget: JsonObject, pods: Sequence[PodView]) -> tuple[int | None, int | str]:
        """How many pods are expected and how many of them have to be healthy; or None, and why that is not known."""
        spec = budget["spec"]
        if spec.get("maxUnavailable") is None and isinstance(spec.get("minAvailable"), int):
            return len(pods), int(spec["minAvailable"])
        scales: dict[str, int] = {}
        for pod in pods:
            owner = pod.metadata.controller
            if owner is None:
                continue
            scale = self._scale(pod.metadata.namespace, owner.kind, owner.name, owner.uid)
            if scale is None:
                return None, f'found no controllers for pod "{pod.name}"'
            scales[scale[0]] = scale[1]
        expected = sum(scales.values())
        if spec.get("maxUnavailable") is not None:
            return expected, max(0, expected - scaled(spec["maxUnavailable"], expected, round_up=True))
        return expected, scaled(spec["minAvailable"], expected, round_up=True) if spec.get("minAvailable") else 0

    def _scale(self, namespace: str, kind: str, name: str, uid: str) -> tuple[str, int] | None:
        if kind not in SCALED:
            return None
        owner = self._context.get(kind, namespace, name)
        if owner is None or owner["metadata"]["uid"] != uid:
            return None
        above = controller_of(owner) if kind == "ReplicaSet" else None
        if above is not None and above["kind"] == "Deployment":
            return self._scale(namespace, "Deployment", above["name"], above["uid"])
        return uid, number(owner["spec"], "replicas", 1)

    def _fail(self, budget: JsonObject, why: object) -> None:
        message = f"Failed to calculate the number of expected pods: {why}"
        self._recorder.warning(budget, "CalculateExpectedPodCountFailed", message)
        status = {**(budget.get("status") or {}), "disruptionsAllowed": 0}
        _put_condition(status, "False", "SyncFailed", str(why), self._context.timestamp())
        if status != budget.get("status"):
            self._context.update_status("PodDisruptionBudget", budget, status)

    def _budget_changed(self, change: ObjectChange) -> None:
        if change.type != "DELETED":
            self._lane.add(key_of(change))

    def _pod_changed(self, old: PodView | None, new: PodView | None) -> None:
        for pod in (old, new):
            if pod is not None:
                self._enqueue_budgets(pod.metadata.namespace, pod.metadata.labels)

    def _owner_changed(self, change: ObjectChange) -> None:
        for stored in self._context.api.store.items(self._context.kind("PodDisruptionBudget"), change.new.namespace):
            self._lane.add_after((stored.namespace, stored.name), SETTLE_SECONDS)

    def _enqueue_budgets(self, namespace: str, labels: dict[str, str]) -> None:
        for stored in self._context.api.store.items(self._context.kind("PodDisruptionBudget"), namespace):
            if selector_of(stored.decode()["spec"]).matches(labels):
                self._lane.add_after((stored.namespace, stored.name), SETTLE_SECONDS)


def status_of(
    budget: JsonObject, healthy: int, desired: int, expected: int, disrupted: dict[str, str], time: str
) -> JsonObject:
    allowed = max(0, healthy - desired) if expected > 0 else 0
    generation = budget["metadata"].get("generation", 0)
    status: JsonObject = {"observedGeneration": generation} if generation else {}
    if disrupted:
        status["disruptedPods"] = disrupted
    status |= {"disruptionsAllowed": allowed, "currentHealthy": healthy}
    status |= {"desiredHealthy": desired, "expectedPods": expected}
    status["conditions"] = list((budget.get("status") or {}).get("conditions") or ())
    _put_condition(
        status, "True" if allowed else "False", "SufficientPods" if allowed else "InsufficientPods", "", time
    )
    return status


def _put_condition(status: JsonObject, value: str, reason: str, message: str, time: str) -> None:
    others, new = [], {"type": "DisruptionAllowed", "status": value}
    if status.get("observedGeneration"):
        new["observedGeneration"] = status["observedGeneration"]
    new |= {"lastTransitionTime": time, "reason": reason, "message": message}
    for each in status.get("conditions") or ():
        if each["type"] != "DisruptionAllowed":
            others.append(each)
        elif each["status"] == value:
            new["lastTransitionTime"] = each["lastTransitionTime"]
    status["conditions"] = [*others, new]


def _still_disrupted(budget: JsonObject, pods: Sequence[PodView], now: float) -> dict[str, str]:
    noted = (budget.get("status") or {}).get("disruptedPods") or {}
    alive = {pod.name for pod in pods if not pod.terminating}
    return {n: t for n, t in noted.items() if n in alive and (seconds(t) or 0.0) + DELETION_SECONDS >= now}
