"""Rolls out Deployments: a ReplicaSet for each version of the pod template, and the way from one to the next.

Each look does one step (the new ReplicaSet grows, or old ones shrink) and writes the status; the change that follows
brings the next look. A rollback is nothing special: kubectl writes the old template, and the old ReplicaSet with that
template becomes the new one, under a new revision number.
"""

from __future__ import annotations

from collections.abc import Sequence

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import StatusError
from podium_cluster.apiserver.store.collection import ObjectChange
from podium_cluster.controllers import conditions, rollout
from podium_cluster.controllers.context import ControllerContext, copied, key_of, number
from podium_cluster.controllers.ownership import claimed_objects, controller_reference, selector_of
from podium_cluster.controllers.pods import Key, PodView, seconds
from podium_cluster.controllers.revisions import template_hash


class Deployments:
    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._recorder = context.recorder("deployment-controller")
        self._lane = context.lane("Deployment", self.sync)
        context.watch("Deployment", self._deployment_changed)
        context.watch("ReplicaSet", self._replica_set_changed)
        context.watch_pods(self._pod_changed)

    def sync(self, key: Key) -> None:
        deployment = self._context.get("Deployment", *key)
        if deployment is None:
            return
        sets = claimed_objects(self._context, "ReplicaSet", deployment, selector_of(deployment["spec"]))
        new = new_of(deployment, sets)
        if "deletionTimestamp" in deployment["metadata"]:
            self._write_status(deployment, sets, new)
            return
        deployment = self._note_pause(deployment)
        if new is not None:
            new = self._brought_in_step(deployment, sets, new)
            sets = [new if each["metadata"]["uid"] == new["metadata"]["uid"] else each for each in sets]
            deployment = self._with_revision(deployment, new)
            if rollout.has_deadline(deployment) and _progressing(deployment) is None:
                message = f'Found new replica set "{new["metadata"]["name"]}"'
                deployment = self._progress(deployment, "True", "FoundNewReplicaSet", message)
        if deployment["spec"].get("paused") or _was_scaled(deployment, sets):
            self._scale(deployment, sets, new)
        elif rollout.is_rolling(deployment):
            self._roll(deployment, sets, new)
        else:
            self._recreate(deployment, sets, new)

    # The three ways to go on.

    def _scale(self, deployment: JsonObject, sets: list[JsonObject], new: JsonObject | None) -> None:
        sizes = rollout.sizes_when_scaled(deployment, _others(sets, new), new)
        sets, _ = self._resize(deployment, sets, sizes or {}, with_annotations=True)
        if deployment["spec"].get("paused"):
            self._clean_up(deployment, _others(sets, new))
        self._write_status(deployment, sets, _reread(sets, new))

    def _roll(self, deployment: JsonObject, sets: list[JsonObject], new: JsonObject | None) -> None:
        if new is None:
            deployment, new = self._create_new(deployment, sets)
            sets = [*sets, new]
        name, wanted = new["metadata"]["name"], rollout.replicas(deployment)
        size = wanted if rollout.replicas(new) > wanted else rollout.size_of_new(deployment, sets, new)
        sets, scaled = self._resize(deployment, sets, {name: size})
        if not scaled:
            sets, scaled = self._resize(deployment, sets, rollout.sizes_of_old(deployment, _others(sets, new), new))
        if not scaled and rollout.is_complete(deployment, deployment.get("status") or {}):
            self._clean_up(deployment, _others(sets, new))
        self._write_rollout_status(deployment, sets, _reread(sets, new))

    def _recreate(self, deployment: JsonObject, sets: list[JsonObject], new: JsonObject | None) -> None:
        old = _others(sets, new)
        sets, scaled = self._resize(deployment, sets, {each["metadata"]["name"]: 0 for each in old})
        if scaled or self._run_still(old):
            self._write_rollout_status(deployment, sets, _reread(sets, new))
            return
        if new is None:
            deployment, new = self._create_new(deployment, sets)
            sets = [*sets, new]
        sets, _ = self._resize(deployment, sets, {new["metadata"]["name"]: rollout.replicas(deployment)})
        if rollout.is_complete(deployment, deployment.get("status") or {}):
            self._clean_up(deployment, _others(sets, new))
        self._write_rollout_status(deployment, sets, _reread(sets, new))

    def _run_still(self, old: Sequence[JsonObject]) -> bool:
        if any(rollout.counted(each, "replicas") for each in old):
            return True
        pods = (pod for each in old for pod in self._context.pods.owned_by(each["metadata"]["uid"]))
        return any(not pod.finished for pod in pods)

    # The new ReplicaSet.

    def _create_new(self, deployment: JsonObject, sets: Sequence[JsonObject]) -> tuple[JsonObject, JsonObject]:
        spec, meta = deployment["spec"], deployment["metadata"]
        template = copied(spec["template"])
        marked = template_hash(template, (deployment.get("status") or {}).get("collisionCount"))
        template.setdefault("metadata", {}).setdefault("labels", {})[rollout.HASH_LABEL] = marked
        selector = copied(spec["selector"])
        selector.setdefault("matchLabels", {})[rollout.HASH_LABEL] = marked
        new: JsonObject = {
            "metadata": {
                "name": f"{meta['name'][: 253 - 1 - len(marked)]}-{marked}",
                "namespace": meta["namespace"],
                "labels": dict(template["metadata"]["labels"]),
                "ownerReferences": [controller_reference(deployment)],
            },
            "spec": {"replicas": 0, "selector": selector, "template": template},
        }
        if spec.get("minReadySeconds"):
            new["spec"]["minReadySeconds"] = spec["minReadySeconds"]
        new["spec"]["replicas"] = size = rollout.size_of_new(deployment, [*sets, new], new)
        revision = max((rollout.revision(each) for each in sets), default=0) + 1
        annotations = rollout.annotations_of_new(deployment, new, revision) | rollout.size_annotations(deployment)
        new["metadata"]["annotations"] = annotations
        created = self._created(deployment, new)
        name = created["metadata"]["name"]
        if size > 0:
            self._recorder.normal(deployment, "ScalingReplicaSet", f"Scaled up replica set {name} from 0 to {size}")
        deployment = self._with_revision(deployment, created)
        if rollout.has_deadline(deployment):
            message = f'Created new replica set "{name}"'
            deployment = self._progress(deployment, "True", "NewReplicaSetCreated", message)
        return deployment, created

    def _created(self, deployment: JsonObject, new: JsonObject) -> JsonObject:
        name = new["metadata"]["name"]
        try:
            return self._context.create("ReplicaSet", new)
        except StatusError as error:
            if error.reason == "AlreadyExists":  # another template with this hash: the next look counts it in
                status = dict(deployment.get("status") or {})
                status["collisionCount"] = int(status.get("collisionCount") or 0) + 1
                self._context.update_status("Deployment", deployment, status)
            else:
                message = f'Failed to create new replica set "{name}": {error.message}'
                if rollout.has_deadline(deployment):
                    self._progress(deployment, "False", "ReplicaSetCreateError", message)
                self._recorder.warning(deployment, "ReplicaSetCreateError", message)
            raise

    def _brought_in_step(self, deployment: JsonObject, sets: Sequence[JsonObject], new: JsonObject) -> JsonObject:
        """The new ReplicaSet with the annotations, revision and readiness time that the Deployment asks for."""
        revision = max((rollout.revision(each) for each in _others(sets, new)), default=0) + 1
        annotations = rollout.annotations_of_new(deployment, new, revision)
        ready_seconds = number(deployment["spec"], "minReadySeconds")
        same_seconds = ready_seconds == number(new["spec"], "minReadySeconds")
        if same_seconds and annotations == new["metadata"].get("annotations"):
            return new
        spec = {**new["spec"], "minReadySeconds": ready_seconds}
        new = {**new, "metadata": {**new["metadata"], "annotations": annotations}, "spec": spec}
        return self._context.update("ReplicaSet", new)

    def _with_revision(self, deployment: JsonObject, new: JsonObject) -> JsonObject:
        revision = new["metadata"]["annotations"][rollout.REVISION]
        annotations = deployment["metadata"].get("annotations") or {}
        if annotations.get(rollout.REVISION) == revision:
            return deployment
        metadata = {**deployment["metadata"], "annotations": {**annotations, rollout.REVISION: revision}}
        return self._context.update("Deployment", {**deployment, "metadata": metadata})

    # Sizes.

    def _resize(
        self,
        deployment: JsonObject,
        sets: Sequence[JsonObject],
        sizes: dict[str, int],
        *,
        with_annotations: bool = False,
    ) -> tuple[list[JsonObject], bool]:
        """The ReplicaSets after those named have got their sizes, and whether any size changed."""
        after, scaled = [], False
        for before in sets:
            each = before
            name, had = each["metadata"]["name"], rollout.replicas(each)
            size = sizes.get(name, had)
            annotations = (each["metadata"].get("annotations") or {}) | rollout.size_annotations(deployment)
            stale = with_annotations and name in sizes and annotations != each["metadata"].get("annotations")
            if size != had or stale:
                metadata = {**each["metadata"], "annotations": annotations}
                each = self._context.update(
                    "ReplicaSet", {**each, "metadata": metadata, "spec": {**each["spec"], "replicas": size}}
                )
            if size != had:
                scaled = True
                way = "up" if size > had else "down"
                message = f"Scaled {way} replica set {name} from {had} to {size}"
                self._recorder.normal(deployment, "ScalingReplicaSet", message)
            after.append(each)
        return after, scaled

    def _clean_up(self, deployment: JsonObject, old: Sequence[JsonObject]) -> None:
        """Deletes the oldest of the empty ReplicaSets that are over the history limit."""
        limit = deployment["spec"].get("revisionHistoryLimit")
        if limit is None or limit == 2**31 - 1:
            return
        alive = [each for each in old if "deletionTimestamp" not in each["metadata"]]
        for each in sorted(alive, key=rollout.revision)[: max(0, len(alive) - limit)]:
            meta, seen = each["metadata"], rollout.counted(each, "observedGeneration")
            if not rollout.counted(each, "replicas") and not rollout.replicas(each) and meta["generation"] <= seen:
                self._context.delete("ReplicaSet", meta["namespace"], meta["name"])

    # Status.

    def _note_pause(self, deployment: JsonObject) -> JsonObject:
        if not rollout.has_deadline(deployment):
            return deployment
        now = _progressing(deployment)
        reason = now.get("reason") if now is not None else None
        paused = bool(deployment["spec"].get("paused"))
        if reason == "ProgressDeadlineExceeded" or paused == (reason == "DeploymentPaused"):
            return deployment
        if paused:
            return self._progress(deployment, "Unknown", "DeploymentPaused", "Deployment is paused")
        return self._progress(deployment, "Unknown", "DeploymentResumed", "Deployment is resumed")

    def _progress(self, deployment: JsonObject, value: str, reason: str, message: str) -> JsonObject:
        status = copied(deployment.get("status") or {})
        rollout.put(status, "Progressing", value, reason, message, self._context.timestamp())
        return self._context.update_status("Deployment", deployment, status)

    def _write_status(self, deployment: JsonObject, sets: Sequence[JsonObject], new: JsonObject | None) -> None:
        status = rollout.status_of(deployment, sets, new, self._context.timestamp())
        if status != deployment.get("status"):
            self._context.update_status("Deployment", deployment, status)

    def _write_rollout_status(self, deployment: JsonObject, sets: Sequence[JsonObject], new: JsonObject | None) -> None:
        time = self._context.timestamp()
        status = rollout.status_of(deployment, sets, new, time)
        meta = deployment["metadata"]
        if not rollout.has_deadline(deployment):
            conditions.without(status, "Progressing")
        now = _progressing(deployment)
        same_pods = status.get("replicas", 0) == status.get("updatedReplicas", 0)
        was_complete = same_pods and now is not None and now.get("reason") == "NewReplicaSetAvailable"
        if rollout.has_deadline(deployment) and not was_complete:
            what = f'ReplicaSet "{new["metadata"]["name"]}"' if new is not None else f'Deployment "{meta["name"]}"'
            if rollout.is_complete(deployment, status):
                message = f"{what} has successfully progressed."
                rollout.put(status, "Progressing", "True", "NewReplicaSetAvailable", message, time)
            elif rollout.is_progressing(deployment, status):
                conditions.without(status, "Progressing")
                rollout.put(status, "Progressing", "True", "ReplicaSetUpdated", f"{what} is progressing.", time)
                if now is not None and now["status"] == "True":
                    status["conditions"][-1]["lastTransitionTime"] = now["lastTransitionTime"]
            elif self._deadline(deployment, status) < 0:
                message = f"{what} has timed out progressing."
                rollout.put(status, "Progressing", "False", "ProgressDeadlineExceeded", message, time)
        _copy_failure(status, sets, new)
        if status != deployment.get("status"):
            self._context.update_status("Deployment", deployment, status)
        elif now is not None and not rollout.is_complete(deployment, status):
            wait = self._deadline(deployment, status)
            if 0 <= wait < float("inf"):
                self._lane.add_after((meta["namespace"], meta["name"]), wait + 1)

    def _deadline(self, deployment: JsonObject, status: JsonObject) -> float:
        """Seconds until progress is overdue, below zero when it is; never, where nothing is awaited."""
        progressing = conditions.condition(status, "Progressing")
        if progressing is None or progressing.get("reason") == "NewReplicaSetAvailable":
            return float("inf")
        if progressing.get("reason") == "ProgressDeadlineExceeded":
            return -1.0
        since = seconds(progressing.get("lastUpdateTime")) or 0.0
        return since + float(deployment["spec"]["progressDeadlineSeconds"]) - self._context.now()

    # Who is looked at when something changes.

    def _deployment_changed(self, change: ObjectChange) -> None:
        if change.type != "DELETED":
            self._lane.add(key_of(change))

    def _replica_set_changed(self, change: ObjectChange) -> None:
        owners = [
            each
            for each in change.new.decode()["metadata"].get("ownerReferences") or ()
            if each.get("controller") and each["kind"] == "Deployment"
        ]
        for owner in owners:
            self._lane.add((change.new.namespace, owner["name"]))
        if not owners and change.type != "DELETED":
            for stored in self._context.api.store.items(self._context.kind("Deployment"), change.new.namespace):
                if selector_of(stored.decode()["spec"]).matches(change.new.labels):
                    self._lane.add((stored.namespace, stored.name))

    def _pod_changed(self, old: PodView | None, new: PodView | None) -> None:
        """A Deployment that recreates waits for the last pod of the old ReplicaSets to go."""
        if new is not None or old is None or old.metadata.controller is None:
            return
        owner = old.metadata.controller
        if owner.kind == "ReplicaSet":
            stored = self._context.api.store.get(self._context.kind("ReplicaSet"), old.metadata.namespace, owner.name)
            if stored is not None:
                self._replica_set_changed(ObjectChange("MODIFIED", stored, None))


def new_of(deployment: JsonObject, sets: Sequence[JsonObject]) -> JsonObject | None:
    """The ReplicaSet with the Deployment's template, the oldest of several."""
    template = deployment["spec"]["template"]
    matching = [each for each in sets if _without_hash(each["spec"]["template"]) == _without_hash(template)]
    return min(matching, key=rollout.by_age, default=None)


def _progressing(deployment: JsonObject) -> JsonObject | None:
    return conditions.condition(deployment.get("status") or {}, "Progressing")


def _without_hash(template: JsonObject) -> JsonObject:
    meta = dict(template.get("metadata") or {})
    labels = {key: value for key, value in (meta.get("labels") or {}).items() if key != rollout.HASH_LABEL}
    meta["labels"] = labels
    return {**template, "metadata": {key: value for key, value in meta.items() if value}}


def _was_scaled(deployment: JsonObject, sets: Sequence[JsonObject]) -> bool:
    wanted = rollout.replicas(deployment)
    noted = (rollout.annotated_number(each, rollout.DESIRED) for each in sets if rollout.replicas(each) > 0)
    return any(number is not None and number != wanted for number in noted)


def _others(sets: Sequence[JsonObject], new: JsonObject | None) -> list[JsonObject]:
    return [each for each in sets if new is None or each["metadata"]["name"] != new["metadata"]["name"]]


def _reread(sets: Sequence[JsonObject], new: JsonObject | None) -> JsonObject | None:
    """The new ReplicaSet as it is after what was written."""
    name = None if new is None else new["metadata"]["name"]
    return next((each for each in sets if each["metadata"]["name"] == name), None)


def _copy_failure(status: JsonObject, sets: Sequence[JsonObject], new: JsonObject | None) -> None:
    first = ([new] if new is not None else []) + list(sets)
    failed = (conditions.condition(each.get("status") or {}, "ReplicaFailure") for each in first)
    failure = next((each for each in failed if each is not None), None)
    if failure is None:
        conditions.without(status, "ReplicaFailure")
        return
    time = failure["lastTransitionTime"]
    rollout.put(status, "ReplicaFailure", failure["status"], failure["reason"], failure["message"], time)
