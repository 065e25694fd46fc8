"""Applies a patch to a stored object, giving the object that is to be stored next.

How each kind of patch works is patches/; this module chooses one, and records who owns what after a write: objects
that were once applied from the server's side keep a record of their managers, the others carry none.

Each kind of patch has its own complaint about a body that is not one.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from podium.framework.clock import Clock
from podium.kube.documents import DocumentError, read_json, read_yaml
from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import StatusError, bad_request, unsupported_media_type
from podium_cluster.apiserver.kind import Kind
from podium_cluster.apiserver.schema import schema_of
from podium_cluster.apiserver.store import storage_form
from podium_cluster.apiserver.store.collection import Stored
from podium_cluster.apiserver.write_context import WriteOptions
from podium_cluster.apiserver.writes.patches import (
    json_patch,
    merge_patch,
    server_side_apply,
    strategic_merge,
    track_update,
)
from podium_cluster.apiserver.writes.patches.apply import check_type

JSON_PATCH: Final = "application/json-patch+json"
MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"
_MAP: Final = "map[string]interface {}"


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


def json_operations(body: Any) -> list[dict[str, Any]]:
    """The operations of a JSON patch."""
    found = _json(body)
    if found is None:
        return []
    if not isinstance(found, list):
        raise bad_request(f"error decoding patch: {_mismatch(found, '[]handlers.jsonPatchOp')}")
    for operation in found:
        if not isinstance(operation, dict):
            raise bad_request(f"error decoding patch: {_mismatch(operation, 'handlers.jsonPatchOp')}")
    return found


def merge_document(body: Any) -> dict[str, Any]:
    """A JSON merge patch."""
    found = _json(body)
    if found is None:
        raise bad_request("Invalid JSON Patch")
    if not isinstance(found, dict):
        raise bad_request(f"error decoding patch: {_mismatch(found, _MAP)}")
    return found


def strategic_document(body: Any) -> dict[str, Any]:
    """A strategic merge patch."""
    found = _json(body)
    if found is not None and not isinstance(found, dict):
        raise bad_request(_mismatch(found, _MAP))
    return found or {}


def applied_configuration(body: Any) -> dict[str, Any]:
    """What is applied: YAML, of which JSON is a part."""
    found = body
    if isinstance(body, bytes):
        try:
            found = read_yaml(body)
        except DocumentError as error:
            where = f"line {error.line}: " if error.line else ""
            problem = f"error converting YAML to JSON: yaml: {where}{error.problem}"
            raise bad_request(f"error decoding YAML: {problem}") from None
    if found is not None and not isinstance(found, dict):
        message = f"error unmarshaling JSON: while decoding JSON: {_mismatch(found, _MAP)}"
        raise bad_request(f"error decoding YAML: {message}")
    return found or {}


def _json(body: Any) -> Any:
    if not isinstance(body, bytes):
        return body
    try:
        return read_json(body)
    except DocumentError:
        raise bad_request("invalid JSON patch") from None


def _mismatch(value: Any, expected: str) -> str:
    words: dict[type, str] = {dict: "object", list: "array", str: "string", bool: "bool"}
    return f"json: cannot unmarshal {words.get(type(value), 'number')} into Go value of type {expected}"
