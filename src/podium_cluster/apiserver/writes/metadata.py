"""Fills in the metadata that the server decides, on create and on update.

Checks before that an object is where its path says, and that its namespace takes new objects.
"""

import random
from typing import Any, Final

import msgspec

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import Cause, bad_request, forbidden, not_found
from podium_cluster.apiserver.kind import Kind
from podium_cluster.apiserver.kinds import NAMESPACE
from podium_cluster.apiserver.store.object_store import ObjectStore

_SUFFIX_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
_LONGEST_GENERATED: Final = 63 - 5
_REPEATED_OWNERS: Final = (
    ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject "
    "such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
)
_SERVER_ONLY: Final = ("selfLink", "deletionTimestamp", "deletionGracePeriodSeconds", "resourceVersion")


def fill_new(metadata: JsonObject, kind: Kind, namespace: str, now: str, rng: random.Random) -> None:
    """A new object's name where it is to be made up, namespace, uid and birth; what only the server says is dropped."""
    if not metadata.get("name") and (prefix := metadata.get("generateName")):
        metadata["name"] = generated_name(prefix, rng)
    for field in _SERVER_ONLY:
        metadata.pop(field, None)
    if kind.namespaced:
        metadata["namespace"] = namespace
    metadata["uid"] = new_uid(rng)
    metadata["creationTimestamp"] = now


def generated_name(prefix: str, rng: random.Random) -> str:
    """The prefix, shortened where it must be, and five characters that spell nothing."""
    return prefix[:_LONGEST_GENERATED] + "".join(rng.choices(_SUFFIX_ALPHABET, k=5))


def new_uid(rng: random.Random) -> str:
    """A random UUID of version 4."""
    digits = f"{rng.getrandbits(128):032x}"
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


def carry_over(new: JsonObject, old: JsonObject) -> None:
    """What a writer cannot change about an object that exists, taken from what is stored."""
    for field in ("creationTimestamp", "deletionTimestamp"):
        if field in old:
            new[field] = old[field]
    for field in ("uid", "deletionGracePeriodSeconds", "namespace"):
        if not new.get(field) and field in old:
            new[field] = old[field]
    if "generation" in old:
        new["generation"] = old["generation"]
    else:
        new.pop("generation", None)
    new.pop("selfLink", None)


def without_repeated_owners(metadata: JsonObject) -> list[str]:
    """Drop owners that are named twice; what to warn about."""
    owners = metadata.get("ownerReferences")
    if not owners or len(owners) < 2:
        return []
    distinct: dict[bytes, dict[str, Any]] = {}
    repeated = []
    for owner in owners:
        written = msgspec.json.encode(owner, order="sorted")
        if written in distinct:
            repeated.append(owner.get("uid", ""))
        else:
            distinct[written] = owner
    metadata["ownerReferences"] = list(distinct.values())
    return [f"{_REPEATED_OWNERS}{', '.join(repeated)}"] if repeated else []


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
