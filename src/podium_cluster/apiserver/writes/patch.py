"""Applies a patch to a stored object, giving the object that is to be stored next.

How each kind of patch works is patches/; this module chooses one, and records who owns what after a write: objects
that were once applied from the server's side keep a record of their managers, the others carry none.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from podium.framework.clock import Clock
from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import StatusError, bad_request, unsupported_media_type
from podium_cluster.apiserver.kind import Kind
from podium_cluster.apiserver.schema import schema_of
from podium_cluster.apiserver.store import storage_form
from podium_cluster.apiserver.store.collection import Stored
from podium_cluster.apiserver.writes.options import WriteOptions
from podium_cluster.apiserver.writes.patches import (
    json_patch,
    merge_patch,
    server_side_apply,
    strategic_merge,
    track_update,
)
from podium_cluster.apiserver.writes.patches.check_applied import check_type
from podium_cluster.apiserver.writes.patches.decoding import (
    applied_configuration,
    json_operations,
    merge_document,
    strategic_document,
)

JSON_PATCH: Final = "application/json-patch+json"
MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"


def decoded(body: bytes, media: str, kind: Kind) -> Any:
    """The patch in a request's body; StatusError where it is none, or where there are no such patches."""
    if media not in (JSON_PATCH, MERGE, STRATEGIC, APPLY):
        raise StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})
    if media == STRATEGIC and kind.custom:
        raise unsupported_media_type((JSON_PATCH, MERGE, APPLY))
    if media == APPLY:
        return applied_configuration(body)
    if media == JSON_PATCH:
        return json_operations(body)
    return merge_document(body) if media == MERGE else strategic_document(body)


def patched(
    clock: Clock, kind: Kind, old: Stored, body: Any, media: str, subresource: str, options: WriteOptions
) -> JsonObject:
    """The object as the patch leaves it."""
    current = storage_form.decoded(old, kind)
    if media == APPLY:
        return applied(clock, kind, current, body, subresource, options)
    return merged(current, body, media, kind)


def merged(current: JsonObject, body: Any, media: str, kind: Kind) -> JsonObject:
    """An object with a patch of any kind but apply in it."""
    if media == JSON_PATCH:
        made = json_patch(current, body)
    elif media == MERGE:
        made = merge_patch(current, body)
    elif media == STRATEGIC:
        made = strategic_merge(current, body, schema_of(kind).root)
    else:
        raise StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})
    if not isinstance(made, dict):
        raise bad_request("the patch leaves something that is not an object")
    return made


def applied(
    clock: Clock, kind: Kind, current: JsonObject | None, body: Any, subresource: str, options: WriteOptions
) -> JsonObject:
    """The object as server-side apply leaves it; None is an object that does not exist yet."""
    check_type(body, kind.api_version, kind.kind)
    return server_side_apply(
        current,
        body,
        manager=options.manager,
        force=options.force,
        schema=schema_of(kind).root,
        now=_now(clock),
        subresource=subresource,
        reset=reset_fields(kind, subresource),
    )


def tracked(
    clock: Clock, kind: Kind, old: Stored, obj: JsonObject, subresource: str, options: WriteOptions
) -> JsonObject:
    """An object about to be stored, with its managers brought up to date where any are kept."""
    if "managedFields" not in obj["metadata"] and b'"managedFields":' not in old.raw:
        return obj
    obj["kind"], obj["apiVersion"] = kind.kind, kind.api_version
    schema_of(kind).drop_empty(obj)
    return track_update(
        storage_form.decoded(old, kind),
        obj,
        manager=options.manager,
        schema=schema_of(kind).root,
        now=_now(clock),
        subresource=subresource,
        reset=reset_fields(kind, subresource),
    )


def reset_fields(kind: Kind, subresource: str) -> tuple[str, ...]:
    """What a write through this path never changes."""
    if not kind.has_status:
        return ()
    if subresource == "status":
        return ("spec", "metadata.labels") if kind.plural == "deployments" else ("spec",)
    return ("status",)


def _now(clock: Clock) -> datetime:
    return datetime.fromtimestamp(int(clock.now()), UTC)
