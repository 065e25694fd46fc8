"""Stores the versions of a StatefulSet's or DaemonSet's template as ControllerRevisions: what `kubectl rollout history`
lists and `kubectl rollout undo` goes back to. A template that comes back gets its old revision under a new number.

The hash of a template is part of names and labels, so that the pods of each version can be distinguished. Of two
templates that say the same the hash is the same. It is not the number that kube-controller-manager computes, which
depends on how Go prints its structs. Letters that could form words are left out, as everywhere in such names.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import msgspec

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import StatusError
from podium_cluster.controllers.context import ControllerContext, copied
from podium_cluster.controllers.ownership import claimed_objects, controller_reference, selector_of

_SAFE_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_encoder = msgspec.json.Encoder(order="deterministic")


def revisions_of(context: ControllerContext, owner: JsonObject) -> list[JsonObject]:
    """The owner's revisions, the newest last."""
    found = claimed_objects(context, "ControllerRevision", owner, selector_of(owner["spec"]))
    return sorted(found, key=lambda each: (each["revision"], each["metadata"]["name"]))


def template_of(revision: JsonObject) -> JsonObject:
    template = copied(revision["data"]["spec"]["template"])
    template.pop("$patch", None)
    return dict(template)


def newest(
    context: ControllerContext, owner: JsonObject, revisions: Sequence[JsonObject], hash_label: str
) -> tuple[JsonObject, int]:
    """The revision of the owner's template as it is now, made if need be, and how often its name was taken so far."""
    template = owner["spec"]["template"]
    data = {"spec": {"template": {**copied(template), "$patch": "replace"}}}
    collisions = int((owner.get("status") or {}).get("collisionCount") or 0)
    number = revisions[-1]["revision"] + 1 if revisions else 1
    equal = [each for each in revisions if each["data"] == data]
    if equal and equal[-1] is revisions[-1]:
        return equal[-1], collisions
    if equal:
        return context.update("ControllerRevision", {**equal[-1], "revision": number}), collisions
    while True:
        marked = template_hash(template, collisions)
        metadata = {
            "name": f"{owner['metadata']['name'][:223]}-{marked}",
            "namespace": owner["metadata"]["namespace"],
            "labels": {**((template.get("metadata") or {}).get("labels") or {}), hash_label: marked},
            "ownerReferences": [controller_reference(owner)],
        }
        if owner["metadata"].get("annotations"):
            metadata["annotations"] = dict(owner["metadata"]["annotations"])
        try:
            new = {"metadata": metadata, "data": copied(data), "revision": number}
            return context.create("ControllerRevision", new), collisions
        except StatusError as error:
            if error.reason != "AlreadyExists":
                raise
            collisions += 1


def truncate(
    context: ControllerContext, owner: JsonObject, revisions: Sequence[JsonObject], live: Collection[str]
) -> None:
    """Deletes the oldest revisions that are not in use, as far as they are over the limit. `live` holds names."""
    unused = [each for each in revisions if each["metadata"]["name"] not in live]
    limit = owner["spec"].get("revisionHistoryLimit")
    for each in unused[: max(0, len(unused) - (10 if limit is None else limit))]:
        context.delete("ControllerRevision", each["metadata"]["namespace"], each["metadata"]["name"])


def template_hash(template: Any, collisions: int | None = None) -> str:
    value = _fnv32a(_encoder.encode(template) + (b"" if collisions is None else collisions.to_bytes(8, "little")))
    return "".join(_SAFE_LETTERS[ord(digit) % len(_SAFE_LETTERS)] for digit in str(value))


def _fnv32a(data: bytes) -> int:
    value = 0x811C9DC5
    for byte in data:
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return value
