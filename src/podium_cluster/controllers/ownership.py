"""Finds the objects that belong to a controller, by owner reference, and keeps references in step with the selector.

An object that matches the selector and has no controller is adopted; an owned one that no longer matches is released;
one that another controller owns is left alone. An owner that is being deleted does neither.
"""

from __future__ import annotations

from typing import Any

import msgspec

from podium.kube.json_object import JsonObject
from podium.kube.meta import LabelSelector
from podium.kube.selector import NOTHING, Selector, SelectorError, compile_label_selector
from podium_cluster.apiserver.errors import StatusError
from podium_cluster.controllers.context import ControllerContext
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
