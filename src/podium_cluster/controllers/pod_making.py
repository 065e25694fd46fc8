"""Makes pods from templates; creates and deletes them with the events that `kubectl describe` shows on their owner."""

from __future__ import annotations

from collections.abc import Iterable

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import StatusError
from podium_cluster.apiserver.event_recorder import ComponentEventRecorder
from podium_cluster.apiserver.kinds import POD
from podium_cluster.apiserver.store.collection import Stored
from podium_cluster.apiserver.write_context import WriteOptions
from podium_cluster.apiserver.writes.create import create
from podium_cluster.controllers.context import ControllerContext, copied
from podium_cluster.controllers.ownership import controller_reference
from podium_cluster.controllers.pods import PodView


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
