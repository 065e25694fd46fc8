"""Runs StatefulSets: pods with names, ordinals and volumes of their own.

OrderedReady goes step by step: a pod is made when all before it are available, and taken away from the end when all
that stay are available. Parallel makes and takes all at once. An update takes pods of the old revision from the end,
down to the partition, as many at a time as maxUnavailable allows; they come back with the new one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from podium.kube.json_object import JsonObject
from podium.workloads.budgets import scaled
from podium_cluster.apiserver.errors import StatusError
from podium_cluster.apiserver.event_recorder import ComponentEventRecorder
from podium_cluster.apiserver.store.collection import ObjectChange
from podium_cluster.controllers import revisions
from podium_cluster.controllers.context import ControllerContext, copied, key_of, number
from podium_cluster.controllers.ownership import (
    claimed_pods,
    controller_reference,
    is_namespace_terminating,
    pod_from,
    selector_of,
)
from podium_cluster.controllers.pods import Key, PodView
from podium_cluster.controllers.replica_set import SETTLE_SECONDS, next_available

REVISION_LABEL = "controller-revision-hash"
POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
INDEX_LABEL = "apps.kubernetes.io/pod-index"
HASH_LABEL = "controller.kubernetes.io/hash"


class StatefulSetPlan(msgspec.Struct):
    """What to do now. `create` are ordinals, `delete` pods; a pod that is finished is deleted to be made again."""

    create: list[int] = []
    delete: list[PodView] = []


class StatefulSets:
    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._recorder = context.recorder("statefulset-controller")
        self._lane = context.lane("StatefulSet", self.sync)
        context.watch("StatefulSet", self._set_changed)
        context.watch_pods(self._pod_changed)

    def sync(self, key: Key) -> None:
        owner = self._context.get("StatefulSet", *key)
        if owner is None:
            return
        name = owner["metadata"]["name"]
        pods = [p for p in claimed_pods(self._context, owner, selector_of(owner["spec"])) if parent_of(p.name) == name]
        history = revisions.revisions_of(self._context, owner)
        update, collisions = revisions.newest(self._context, owner, history, HASH_LABEL)
        noted = (owner.get("status") or {}).get("currentRevision")
        current = next((each for each in history if each["metadata"]["name"] == noted), update)
        now = self._context.now()
        failure: StatusError | None = None
        if "deletionTimestamp" not in owner["metadata"]:
            step = plan(owner, pods, update["metadata"]["name"], now)
            if not step.create and not step.delete:
                step.delete = due_for_update(owner, pods, update["metadata"]["name"], now)
            try:
                self._do(owner, step, current, update)
            except StatusError as error:
                failure = error
        pods = self._context.pods.owned_by(owner["metadata"]["uid"])
        status = status_of(owner, pods, current, update, collisions, now)
        if status != owner.get("status"):
            self._context.update_status("StatefulSet", owner, status)
        live = {current["metadata"]["name"], update["metadata"]["name"], status["currentRevision"]}
        live |= {pod.metadata.labels.get(REVISION_LABEL, "") for pod in pods}
        revisions.truncate(self._context, owner, history, live)
        if failure is not None:
            raise failure
        wait = next_available(pods, number(owner["spec"], "minReadySeconds"), now)
        if wait is not None:
            self._lane.add_after(key, wait)

    def _do(self, owner: JsonObject, step: StatefulSetPlan, current: JsonObject, update: JsonObject) -> None:
        for pod in step.delete:
            if not in_range(owner, pod.name):
                self._hand_over_claims(owner, pod)
            self._tell("Delete", owner, pod.name, partial(self._context.delete, "Pod", *pod.key))
        for ordinal in step.create:
            rolling = owner["spec"]["updateStrategy"].get("rollingUpdate") or {}
            version = current if ordinal < _start(owner) + number(rolling, "partition") else update
            new = new_pod(owner, revisions.template_of(version), version["metadata"]["name"], ordinal)
            for claim in claims_of(owner, ordinal):
                _create_claim(self._context, self._recorder, owner, claim, new["metadata"]["name"])
            try:
                self._tell("Create", owner, new["metadata"]["name"], partial(self._context.create, "Pod", new))
            except StatusError as error:
                if not is_namespace_terminating(error):
                    raise
                return

    def _tell(self, verb: str, owner: JsonObject, pod: str, act: Callable[[], object]) -> None:
        name = owner["metadata"]["name"]
        try:
            act()
        except StatusError as error:
            if not is_namespace_terminating(error):
                message = f"{verb} Pod {pod} in StatefulSet {name} failed error: {error.message}"
                self._recorder.warning(owner, f"Failed{verb}", message)
            raise
        self._recorder.normal(owner, f"Successful{verb}", f"{verb} Pod {pod} in StatefulSet {name} successful")

    def _hand_over_claims(self, owner: JsonObject, pod: PodView) -> None:
        """Where claims are not to outlive scaling down, they go with the pod that is scaled away."""
        if retention(owner)[1] != "Delete":
            return
        reference: JsonObject = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.metadata.uid}
        reference |= {"controller": True, "blockOwnerDeletion": True}
        for template in owner["spec"].get("volumeClaimTemplates") or ():
            name = f"{template['metadata']['name']}-{pod.name}"
            claim = self._context.get("PersistentVolumeClaim", pod.metadata.namespace, name)
            if claim is not None:
                claim["metadata"]["ownerReferences"] = [reference]
                self._context.update("PersistentVolumeClaim", claim)

    def _set_changed(self, change: ObjectChange) -> None:
        if change.type != "DELETED":
            self._lane.add(key_of(change))

    def _pod_changed(self, old: PodView | None, new: PodView | None) -> None:
        for pod in (old, new):
            owner = pod.metadata.controller if pod is not None else None
            if pod is not None and owner is not None and owner.kind == "StatefulSet":
                self._lane.add_after((pod.metadata.namespace, owner.name), SETTLE_SECONDS)
        if new is not None and new.metadata.controller is None and new.metadata.labels:
            name = parent_of(new.name)
            if name and self._context.api.store.get(self._context.kind("StatefulSet"), new.metadata.namespace, name):
                self._lane.add((new.metadata.namespace, name))


def plan(owner: JsonObject, pods: Sequence[PodView], update: str, now: float) -> StatefulSetPlan:
    """The pods to create and delete so that the right ordinals are there, before any update is thought of."""
    spec = owner["spec"]
    wait_seconds = number(spec, "minReadySeconds")
    ordered = spec.get("podManagementPolicy", "OrderedReady") != "Parallel"
    by_ordinal = {ordinal_of(pod.name): pod for pod in pods}
    wanted = range(_start(owner), _start(owner) + number(spec, "replicas", 1))
    condemned = sorted((o for o in by_ordinal if o not in wanted and o >= 0), reverse=True)
    step = StatefulSetPlan([], [])
    for ordinal in wanted:
        pod = by_ordinal.get(ordinal)
        if pod is None:
            step.create.append(ordinal)
        elif pod.finished and not pod.terminating:
            step.delete.append(pod)
        elif not ordered or (pod.available(wait_seconds, now) and not pod.terminating and pod.phase == "Running"):
            continue
        if ordered:  # this one must be available before anything else happens
            return step
    first_unhealthy = next((o for o in reversed(condemned) if _unavailable(by_ordinal[o], wait_seconds, now)), None)
    for ordinal in condemned:
        pod = by_ordinal[ordinal]
        if pod.terminating:
            if ordered:
                return step
            continue
        if ordered and not pod.available(wait_seconds, now) and ordinal != first_unhealthy:
            return step
        step.delete.append(pod)
        if ordered:
            return step
    return step


def due_for_update(owner: JsonObject, pods: Sequence[PodView], update: str, now: float) -> list[PodView]:
    """The pods of an old revision that may go now, the last first."""
    spec = owner["spec"]
    if spec["updateStrategy"].get("type") == "OnDelete":
        return []
    rolling = spec["updateStrategy"].get("rollingUpdate") or {}
    wait_seconds, replicas = number(spec, "minReadySeconds"), number(spec, "replicas", 1)
    mine = sorted((p for p in pods if in_range(owner, p.name)), key=lambda p: ordinal_of(p.name), reverse=True)
    allowed = max(1, scaled(rolling.get("maxUnavailable") or 1, replicas, round_up=False))
    allowed -= sum(_unavailable(pod, wait_seconds, now) for pod in mine) + replicas - len(mine)
    # The partition counts places in the row, not ordinals.
    after_partition = [p for p in mine if ordinal_of(p.name) - _start(owner) >= number(rolling, "partition")]
    old = [p for p in after_partition if p.metadata.labels.get(REVISION_LABEL) != update and not p.terminating]
    return old[: max(0, allowed)]


def status_of(
    owner: JsonObject, pods: Sequence[PodView], current: JsonObject, update: JsonObject, collisions: int, now: float
) -> JsonObject:
    wait_seconds, replicas = number(owner["spec"], "minReadySeconds"), number(owner["spec"], "replicas", 1)
    current_name, update_name = current["metadata"]["name"], update["metadata"]["name"]
    alive = [pod.metadata.labels.get(REVISION_LABEL) for pod in pods if not pod.terminating]
    counts = {
        "readyReplicas": sum(pod.phase == "Running" and pod.ready for pod in pods),
        "availableReplicas": sum(pod.phase == "Running" and pod.available(wait_seconds, now) for pod in pods),
        "currentReplicas": alive.count(current_name),
        "updatedReplicas": alive.count(update_name),
    }
    rolling = owner["spec"]["updateStrategy"].get("type") == "RollingUpdate"
    if rolling and counts["updatedReplicas"] == counts["readyReplicas"] == len(pods) == replicas:
        current_name, counts["currentReplicas"] = update_name, counts["updatedReplicas"]
    status: JsonObject = {"observedGeneration": owner["metadata"].get("generation", 0), "replicas": len(pods)}
    status |= {field: count for field, count in counts.items() if count}
    status["availableReplicas"] = counts["availableReplicas"]
    return status | {"currentRevision": current_name, "updateRevision": update_name, "collisionCount": collisions}


def new_pod(owner: JsonObject, template: JsonObject, revision: str, ordinal: int) -> JsonObject:
    pod = pod_from(template, owner)
    name = f"{owner['metadata']['name']}-{ordinal}"
    pod["metadata"]["name"] = name
    labels = pod["metadata"].setdefault("labels", {})
    labels |= {POD_NAME_LABEL: name, INDEX_LABEL: str(ordinal), REVISION_LABEL: revision}
    pod["spec"]["hostname"] = name
    if owner["spec"].get("serviceName"):
        pod["spec"]["subdomain"] = owner["spec"]["serviceName"]
    claimed = [template["metadata"]["name"] for template in owner["spec"].get("volumeClaimTemplates") or ()]
    volumes = [{"name": each, "persistentVolumeClaim": {"claimName": f"{each}-{name}"}} for each in claimed]
    volumes += [volume for volume in pod["spec"].get("volumes") or () if volume["name"] not in claimed]
    if volumes:
        pod["spec"]["volumes"] = volumes
    return pod


def claims_of(owner: JsonObject, ordinal: int) -> list[JsonObject]:
    """The claims that the pod with this ordinal needs."""
    claims = []
    for template in owner["spec"].get("volumeClaimTemplates") or ():
        claim: JsonObject = copied({field: template[field] for field in ("metadata", "spec")})
        meta = claim["metadata"]
        meta["name"] = f"{meta['name']}-{owner['metadata']['name']}-{ordinal}"
        meta["namespace"] = owner["metadata"]["namespace"]
        meta.pop("creationTimestamp", None)
        meta["labels"] = {**(meta.get("labels") or {}), **(owner["spec"]["selector"].get("matchLabels") or {})}
        if retention(owner)[0] == "Delete":
            meta["ownerReferences"] = [controller_reference(owner)]
        claims.append(claim)
    return claims


def _create_claim(
    context: ControllerContext, recorder: ComponentEventRecorder, owner: JsonObject, claim: JsonObject, pod: str
) -> None:
    meta, name = claim["metadata"], owner["metadata"]["name"]
    if context.get("PersistentVolumeClaim", meta["namespace"], meta["name"]) is not None:
        return
    try:
        context.create("PersistentVolumeClaim", claim)
    except StatusError as error:
        message = f"Create Claim {meta['name']} for Pod {pod} in StatefulSet {name} failed error: {error.message}"
        recorder.warning(owner, "FailedCreate", message)
        raise
    message = f"Create Claim {meta['name']} Pod {pod} in StatefulSet {name} success"
    recorder.normal(owner, "SuccessfulCreate", message)


def retention(owner: JsonObject) -> tuple[str, str]:
    """What becomes of claims when the set is deleted, and when it is scaled down."""
    policy = owner["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    return policy.get("whenDeleted", "Retain"), policy.get("whenScaled", "Retain")


def parent_of(pod: str) -> str:
    match = re.fullmatch(r"(.*)-([0-9]+)", pod, re.DOTALL)
    return match[1] if match else ""


def ordinal_of(pod: str) -> int:
    match = re.fullmatch(r"(.*)-([0-9]+)", pod, re.DOTALL)
    return int(match[2]) if match else -1


def in_range(owner: JsonObject, pod: str) -> bool:
    return 0 <= ordinal_of(pod) - _start(owner) < number(owner["spec"], "replicas", 1)


def _start(owner: JsonObject) -> int:
    return number(owner["spec"].get("ordinals") or {}, "start")


def _unavailable(pod: PodView, wait_seconds: int, now: float) -> bool:
    return pod.terminating or not pod.available(wait_seconds, now)
