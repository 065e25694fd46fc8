"""Finds the objects that belong to a controller, by owner reference, and keeps references in step with the selector.

An object that matches the selector and has no controller is adopted; an owned one that no longer matches is released;
one that another controller owns is left alone. An owner that is being deleted does neither.

Pods are made from templates here: created and deleted with the events that `kubectl describe` shows on their owner.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from podium.kube.json_object import JsonObject
from podium.kube.meta import LabelSelector
from podium.kube.selector import NOTHING, Selector, SelectorError, compile_label_selector
from podium_cluster.apiserver.errors import StatusError
from podium_cluster.apiserver.event_recorder import ComponentEventRecorder
from podium_cluster.apiserver.kinds import POD
from podium_cluster.apiserver.store.collection import Stored
from podium_cluster.apiserver.write_context import WriteOptions
from podium_cluster.apiserver.writes.create import create
from podium_cluster.controllers.context import ControllerContext, copied
from podium_cluster.controllers.pods import PodView


def controller_reference(owner: JsonObject) -> JsonObject:
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def controller_of(obj: JsonObject) -> JsonObject | None:
    return next((each for each in obj["metadata"].get("ownerReferences") or () if each.get("controller")), None)


def selector_of(spec: JsonObject) -> Selector:
    """The compiled selector of a spec; one that cannot be read selects nothing."""
    try:
        selector = spec.get("selector")
        return compile_label_selector(None if selector is None else msgspec.convert(selector, LabelSelector))
    except (SelectorError, msgspec.ValidationError):
        return NOTHING


def claimed_pods(
    context: ControllerContext, owner: JsonObject, selector: Selector, *, only_active: bool = False
) -> list[PodView]:
    """The owner's pods, after adopting and releasing."""
    uid, namespace = owner["metadata"]["uid"], owner["metadata"]["namespace"]
    terminating = "deletionTimestamp" in owner["metadata"]
    mine = []
    for pod in context.pods.owned_by(uid):
        if only_active and not pod.active:
            continue
        if selector.matches(pod.metadata.labels):
            mine.append(pod)
        elif not terminating:
            _release(context, pod.metadata.namespace, pod.name, "Pod", uid)
    if not terminating:
        for pod in context.pods.orphans(namespace):
            if pod.terminating or (only_active and not pod.active) or not selector.matches(pod.metadata.labels):
                continue
            if _adopt(context, namespace, pod.name, "Pod", owner):
                mine.append(context.pods.all[pod.key])
    return mine


def claimed_objects(context: ControllerContext, kind: str, owner: JsonObject, selector: Selector) -> list[JsonObject]:
    """The owner's objects of a kind that there are few of: ReplicaSets, ControllerRevisions."""
    meta = owner["metadata"]
    terminating = "deletionTimestamp" in meta
    mine = []
    for stored in context.api.store.items(context.kind(kind), meta["namespace"]):
        matches = selector.matches(stored.labels)
        if not matches and meta["uid"].encode() not in stored.raw:
            continue
        obj = stored.decode()
        controller = controller_of(obj)
        if controller is not None and controller["uid"] == meta["uid"]:
            if matches:
                mine.append(obj)
            elif not terminating:
                _release(context, meta["namespace"], stored.name, kind, meta["uid"])
        elif controller is None and matches and not terminating and "deletionTimestamp" not in obj["metadata"]:
            adopted = _adopt(context, meta["namespace"], stored.name, kind, owner)
            if adopted is not None:
                mine.append(adopted)
    return mine


def _adopt(context: ControllerContext, namespace: str, name: str, kind: str, owner: JsonObject) -> JsonObject | None:
    obj = context.get(kind, namespace, name)
    if obj is None:
        return None
    obj["metadata"].setdefault("ownerReferences", []).append(controller_reference(owner))
    return _written(context, kind, obj)


def _release(context: ControllerContext, namespace: str, name: str, kind: str, uid: str) -> None:
    obj = context.get(kind, namespace, name)
    if obj is not None:
        remaining: list[Any] = [each for each in obj["metadata"]["ownerReferences"] if each["uid"] != uid]
        obj["metadata"]["ownerReferences"] = remaining
        if not remaining:
            del obj["metadata"]["ownerReferences"]
        _written(context, kind, obj)


def _written(context: ControllerContext, kind: str, obj: JsonObject) -> JsonObject | None:
    try:
        return context.update(kind, obj)
    except StatusError as error:
        if error.code in (404, 422):  # gone meanwhile, or not adoptable: as if it had never been seen
            return None
        raise


def pod_from(template: JsonObject, owner: JsonObject, *, finalizers: Iterable[str] = ()) -> JsonObject:
    """The pod of a template, with a name still to be made up."""
    meta = template.get("metadata") or {}
    metadata = {
        "generateName": owner["metadata"]["name"] + "-",
        "namespace": owner["metadata"]["namespace"],
        "ownerReferences": [controller_reference(owner)],
    }
    for field in ("labels", "annotations"):
        if meta.get(field):
            metadata[field] = dict(meta[field])
    finalizers = [*(meta.get("finalizers") or ()), *finalizers]
    if finalizers:
        metadata["finalizers"] = finalizers
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": copied(template["spec"])}


def create_pod(
    context: ControllerContext, recorder: ComponentEventRecorder, owner: JsonObject, pod: JsonObject
) -> Stored | None:
    """Creates the pod. None when its namespace is going away: nothing more can be created there."""
    try:
        created = create(context.api.context, POD, pod, pod["metadata"]["namespace"], WriteOptions())  # without copies
    except StatusError as error:
        if is_namespace_terminating(error):
            return None
        recorder.warning(owner, "FailedCreate", f"Error creating: {error.message}")
        raise
    recorder.normal(owner, "SuccessfulCreate", f"Created pod: {created.name}")
    return created


def delete_pod(context: ControllerContext, recorder: ComponentEventRecorder, owner: JsonObject, pod: PodView) -> None:
    try:
        context.delete("Pod", *pod.key)
    except StatusError as error:
        recorder.warning(owner, "FailedDelete", f"Error deleting: {error.message}")
        raise
    recorder.normal(owner, "SuccessfulDelete", f"Deleted pod: {pod.name}")


def is_namespace_terminating(error: StatusError) -> bool:
    causes = (error.details or {}).get("causes") or ()
    return any(cause.get("reason") == "NamespaceTerminating" for cause in causes)
