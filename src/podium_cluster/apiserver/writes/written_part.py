"""Merges the part of an object that a write may change: everything but the status, or the status alone.

A status update of most kinds may change labels and annotations too, because kubelets and old controllers do; newer
kinds let it change nothing else.
"""

from typing import Any, Final

from kubecel.json_equality import same_json
from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.kind import Kind

_STATUS_ONLY: Final = frozenset(
    {
        "resourceclaims.resource.k8s.io",
        "volumeattachments.storage.k8s.io",
        "customresourcedefinitions.apiextensions.k8s.io",
    }
)
_KEEPS_LABELS: Final = frozenset({"deployments.apps"})
_MANAGED: Final = ("managedFields", "resourceVersion")


def merged(kind: Kind, new: JsonObject, old: JsonObject, subresource: str) -> JsonObject:
    """The next state: what was written where it may be, what is stored elsewhere."""
    if subresource == "status":
        metadata = new["metadata"]
        if kind.custom or kind.stored_in in _STATUS_ONLY:
            metadata = {**old["metadata"], **{key: metadata[key] for key in _MANAGED if key in metadata}}
        elif kind.stored_in in _KEEPS_LABELS:
            metadata = {key: value for key, value in metadata.items() if key != "labels"}
            if "labels" in old["metadata"]:
                metadata["labels"] = old["metadata"]["labels"]
        found = {**old, "metadata": metadata}
        return _with_status(found, new)
    if subresource == "finalize":
        finalizers = (new.get("spec") or {}).get("finalizers")
        spec = {**(old.get("spec") or {}), "finalizers": finalizers}
        if not finalizers:
            del spec["finalizers"]
        return {**old, "metadata": new["metadata"], "spec": spec}
    if kind.has_status:
        return _with_status(new, old)
    return new


def spec_changed(kind: Kind, new: JsonObject, old: JsonObject) -> bool:
    """Whether the change counts in metadata.generation; custom resources count all but metadata and status."""
    if kind.custom or kind.plural == "endpointslices":
        return _differ(_without(new), _without(old))
    return _differ(new.get("spec"), old.get("spec"))


def _differ(new: Any, old: Any) -> bool:
    return new != old or not same_json(new, old)


def _with_status(obj: JsonObject, source: JsonObject) -> JsonObject:
    if "status" in source:
        obj["status"] = source["status"]
    else:
        obj.pop("status", None)
    return obj


def _without(obj: JsonObject) -> JsonObject:
    return {key: value for key, value in obj.items() if key not in ("metadata", "status", "kind", "apiVersion")}
