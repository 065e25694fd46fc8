"""Checks that an object is where its path says, and that its namespace takes new objects."""

from __future__ import annotations

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import Cause, bad_request, forbidden, not_found
from podium_cluster.apiserver.kind import Kind
from podium_cluster.apiserver.kinds import NAMESPACE
from podium_cluster.apiserver.store.object_store import ObjectStore


def metadata_of(obj: JsonObject) -> JsonObject:
    """The object's metadata, made where it has none."""
    metadata: JsonObject | None = obj.get("metadata")
    if metadata is None:
        metadata = obj["metadata"] = {}
    return metadata


def check_address(kind: Kind, metadata: JsonObject, namespace: str | None, name: str) -> None:
    """Name and namespace are those of the URL."""
    given = metadata.get("name")
    if given and given != name:
        raise bad_request(f"the name of the object ({given}) does not match the name on the URL ({name})")
    if not given:
        raise bad_request(f"the name of the object ({name} based on URL) was undeterminable: name must be provided")
    check_namespace(kind, metadata, namespace or "")


def check_namespace(kind: Kind, metadata: JsonObject, namespace: str) -> None:
    """The namespace is the URL's, which is filled in where the object names none; cluster-wide objects have none."""
    if not kind.namespaced:
        metadata.pop("namespace", None)
    elif metadata.get("namespace") and metadata["namespace"] != namespace:
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    else:
        metadata["namespace"] = namespace


def admit_namespace(store: ObjectStore, kind: Kind, namespace: str, name: str) -> None:
    """Nothing is created where there is no namespace, or where one is about to go."""
    space = store.get(NAMESPACE, "", namespace)
    if space is None:
        raise not_found(NAMESPACE, namespace)
    if space.fields[0] == "Terminating":
        cause = Cause("NamespaceTerminating", f"namespace {namespace} is being terminated", "metadata.namespace")
        why = f"unable to create new content in namespace {namespace} because it is being terminated"
        raise forbidden(kind, name, why, [cause])
