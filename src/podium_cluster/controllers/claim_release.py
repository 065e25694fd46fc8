"""Releases resource claims: pods that have ended no longer use them, and a claim without users gives its devices back.

A claim whose last user has gone loses its devices and then its finalizer. One that has devices but never had a user
keeps them until it is deleted. One that was made for a pod which has ended is deleted.
"""

from __future__ import annotations

from podium.kube.devices import FINALIZER
from podium.kube.json_object import JsonObject
from podium.kube.pod import Pod
from podium_cluster.controllers.context import ControllerContext
from podium_cluster.controllers.ownership import controller_of
from podium_cluster.controllers.pods import Key, PodView


def is_done(pod: Pod | PodView) -> bool:
    """Whether the pod will not run any more, or never will."""
    return pod.status.phase in ("Succeeded", "Failed") or (pod.terminating and not pod.spec.node_name)


def release(context: ControllerContext, key: Key) -> None:
    """Takes users that are done from the claim, and then what the claim no longer needs."""
    claim = context.get("ResourceClaim", *key)
    if claim is None:
        return
    status = claim.get("status") or {}
    users = status.get("reservedFor") or []
    left = [user for user in users if _uses(context, key[0], user)]
    has_finalizer = FINALIZER in (claim["metadata"].get("finalizers") or ())
    if len(left) < len(users):
        status = {**status, "reservedFor": left}
        if not left:
            del status["reservedFor"]
            if has_finalizer:
                status.pop("allocation", None)
        claim = context.update_status("ResourceClaim", claim, status)
        if has_finalizer and "allocation" not in (claim.get("status") or {}):
            _remove_finalizer(context, claim)
    elif has_finalizer and "deletionTimestamp" in claim["metadata"] and not left:
        if "allocation" in status:
            status = {field: value for field, value in status.items() if field != "allocation"}
            claim = context.update_status("ResourceClaim", claim, status)
        _remove_finalizer(context, claim)
    if not left:
        _delete_unneeded(context, claim)


def _uses(context: ControllerContext, namespace: str, user: JsonObject) -> bool:
    """Users of kinds that are not known here stay."""
    if user.get("apiGroup") or user.get("resource") != "pods":
        return True
    pod = context.pods.all.get((namespace, user["name"]))
    return pod is not None and pod.metadata.uid == user["uid"] and not is_done(pod)


def _remove_finalizer(context: ControllerContext, claim: JsonObject) -> None:
    metadata = claim["metadata"]
    metadata["finalizers"] = [each for each in metadata["finalizers"] if each != FINALIZER]
    context.update("ResourceClaim", claim)


def _delete_unneeded(context: ControllerContext, claim: JsonObject) -> None:
    """Deletes a claim that was made for a pod which is done; that of a pod that is gone the garbage collector takes."""
    owner, namespace = controller_of(claim), claim["metadata"]["namespace"]
    if owner is None or (owner["apiVersion"], owner["kind"]) != ("v1", "Pod"):
        return
    pod = context.pods.all.get((namespace, owner["name"]))
    if pod is not None and (pod.metadata.uid != owner["uid"] or is_done(pod)):
        context.delete("ResourceClaim", namespace, claim["metadata"]["name"], uid=claim["metadata"]["uid"])
