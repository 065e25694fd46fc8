"""Runs ReplicaSets and ReplicationControllers: as many pods as asked for.

Only active pods count: neither finished nor being deleted. Those missing are created, at most BURST at a time so that
others get their turn; too many go in the order of `deletion_order`.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from podium.kube.json_object import JsonObject
from podium.kube.selector import Selector, selector_from_labels
from podium.workloads.deletion_order import in_deletion_order
from podium_cluster.apiserver.errors import StatusError
from podium_cluster.apiserver.store.collection import ObjectChange
from podium_cluster.controllers import conditions
from podium_cluster.controllers.context import ControllerContext, key_of, number
from podium_cluster.controllers.ownership import (
    claimed_pods,
    controller_of,
    create_pod,
    delete_pod,
    pod_from,
    selector_of,
)
from podium_cluster.controllers.pods import Key, PodView

BURST = 50
SETTLE_SECONDS = 0.02
"""Changes of a pod's status are gathered for this long before the owner is looked at again."""


class Flavour(msgspec.Struct, frozen=True):
    kind: str
    component: str
    counts_terminating: bool


REPLICA_SET = Flavour("ReplicaSet", "replicaset-controller", True)
REPLICATION_CONTROLLER = Flavour("ReplicationController", "replication-controller", False)


class ReplicaSets:
    def __init__(self, context: ControllerContext, flavour: Flavour = REPLICA_SET) -> None:
        self._context = context
        self._flavour = flavour
        self._recorder = context.recorder(flavour.component)
        self._lane = context.lane(flavour.kind, self.sync)
        context.watch(flavour.kind, self._owner_changed)
        context.watch_pods(self._pod_changed)

    def sync(self, key: Key) -> None:
        owner = self._context.get(self._flavour.kind, *key)
        if owner is None:
            return
        selector = self._selector(owner["spec"])
        active = claimed_pods(self._context, owner, selector, only_active=True)
        failure: StatusError | None = None
        done = True
        if "deletionTimestamp" not in owner["metadata"]:
            try:
                done = self._manage(owner, active)
            except StatusError as error:
                failure = error
        uid = owner["metadata"]["uid"]
        terminating = [p for p in self._context.pods.owned_by(uid) if p.terminating and not p.finished]
        new = status_of(owner, active, failure, self._context.now(), self._context.timestamp())
        if self._flavour.counts_terminating:
            new["terminatingReplicas"] = len(terminating)
        if new != owner.get("status"):
            owner = self._context.update_status(self._flavour.kind, owner, new)
        if failure is not None:
            raise failure
        if not done:
            self._lane.add(key)
        wait = next_available(active, number(owner["spec"], "minReadySeconds"), self._context.now())
        if wait is not None:
            self._lane.add_after(key, wait)

    def _selector(self, spec: JsonObject) -> Selector:
        if self._flavour.kind == "ReplicationController":
            return selector_from_labels(spec.get("selector") or {})
        return selector_of(spec)

    def _manage(self, owner: JsonObject, active: list[PodView]) -> bool:
        """Creates or deletes pods; False when there is more to do."""
        missing = number(owner["spec"], "replicas", 1) - len(active)
        for _ in range(min(missing, BURST)):
            if create_pod(self._context, self._recorder, owner, pod_from(owner["spec"]["template"], owner)) is None:
                return True
        if missing < 0:
            for pod in in_deletion_order(active, self._related(owner), self._context.now())[: min(-missing, BURST)]:
                delete_pod(self._context, self._recorder, owner, pod)
        return abs(missing) <= BURST

    def _related(self, owner: JsonObject) -> list[PodView]:
        """The pods of all owners that share this one's own controller: the other ReplicaSets of a Deployment."""
        pods = self._context.pods.owned_by(owner["metadata"]["uid"])
        above = controller_of(owner)
        if above is None:
            return pods
        for stored in self._context.api.store.items(
            self._context.kind(self._flavour.kind), owner["metadata"]["namespace"]
        ):
            if stored.uid != owner["metadata"]["uid"] and above["uid"].encode() in stored.raw:
                pods += self._context.pods.owned_by(stored.uid)
        return pods

    def _owner_changed(self, change: ObjectChange) -> None:
        if change.type != "DELETED":
            self._lane.add(key_of(change))
        for pod in self._context.pods.owned_by(change.new.uid) if change.type == "DELETED" else ():
            self._orphaned(pod)

    def _pod_changed(self, old: PodView | None, new: PodView | None) -> None:
        for pod in (old, new):
            owner = pod.metadata.controller if pod is not None else None
            if pod is not None and owner is not None and owner.kind == self._flavour.kind:
                gone = new is None or old is None or new.active != old.active
                key = (pod.metadata.namespace, owner.name)
                if gone:
                    self._lane.add(key)
                else:
                    self._lane.add_after(key, SETTLE_SECONDS)
        if new is not None and new.metadata.controller is None and (old is None or old.metadata != new.metadata):
            self._orphaned(new)

    def _orphaned(self, pod: PodView) -> None:
        """A ReplicaSet may want it."""
        for stored in self._context.api.store.items(self._context.kind(self._flavour.kind), pod.metadata.namespace):
            if self._selector(stored.decode()["spec"]).matches(pod.metadata.labels):
                self._lane.add((stored.namespace, stored.name))


def status_of(
    owner: JsonObject, active: Sequence[PodView], failure: StatusError | None, now: float, time: str
) -> JsonObject:
    """The status for these pods; what the controller could not do becomes the condition ReplicaFailure."""
    spec = owner["spec"]
    template_labels = (spec["template"].get("metadata") or {}).get("labels") or {}
    template = selector_from_labels(template_labels)
    status = {field: value for field, value in (owner.get("status") or {}).items() if field == "conditions"}
    failed = conditions.condition(status, "ReplicaFailure")
    if failure is not None and failed is None:
        reason = "FailedCreate" if len(active) < number(spec, "replicas", 1) else "FailedDelete"
        new = {"type": "ReplicaFailure", "status": "True", "lastTransitionTime": time, "reason": reason}
        conditions.put(status, new | {"message": failure.message})
    elif failure is None and failed is not None:
        conditions.without(status, "ReplicaFailure")
    ready = [pod for pod in active if pod.ready]
    counts = {
        "fullyLabeledReplicas": sum(template.matches(pod.metadata.labels) for pod in active),
        "readyReplicas": len(ready),
        "availableReplicas": sum(pod.available(number(spec, "minReadySeconds"), now) for pod in ready),
        "observedGeneration": owner["metadata"].get("generation", 0),
    }
    return {"replicas": len(active), **{field: count for field, count in counts.items() if count}, **status}


def next_available(active: Sequence[PodView], min_ready_seconds: int, now: float) -> float | None:
    """Seconds until the next ready pod has been ready for long enough, None when there is none to wait for."""
    waits = [
        pod.ready_since + min_ready_seconds - now
        for pod in active
        if pod.ready_since is not None and not pod.available(min_ready_seconds, now)
    ]
    return max(min(waits), 0.001) if waits else None
