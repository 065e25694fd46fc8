"""Fills in the metadata that the server decides, on create and on update."""

import random
import re
from typing import Any, Final

import msgspec

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.kind import Kind

_SUFFIX_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
_LONGEST_GENERATED: Final = 63 - 5
_REPEATED_OWNERS: Final = (
    ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, and may reject "
    "such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
)
_ANNOTATIONS_LIMIT: Final = 256 << 10
_FINALIZER_INDEX: Final = re.compile(r"metadata\.finalizers\[")
_STANDARD_FINALIZERS: Final = ("kubernetes", "orphan", "foregroundDeletion")
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
