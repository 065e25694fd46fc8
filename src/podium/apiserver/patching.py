"""From a stored object and a patch to the object that is to be stored next, and who owns its fields then.

What a patch makes of an object is decoded like any other, but what is wrong with it is told as a flaw of the patch:
422 about a field `patch` whose value is the whole object (for strategic merge: the patch).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from podium.apiserver import forms
from podium.apiserver.errors import Cause, StatusError, required, unsupported_media_type
from podium.apiserver.kinds import Kind
from podium.apiserver.patches import json_patch, merge_patch, server_side_apply, strategic_merge, track_update
from podium.apiserver.patches.check_applied import check_type
from podium.apiserver.patches.decoding import (
    applied_configuration,
    json_operations,
    merge_document,
    strategic_document,
)
from podium.apiserver.patches.go_text import go_text
from podium.apiserver.schema import schema_of
from podium.apiserver.store import Stored

if TYPE_CHECKING:
    from podium.apiserver.api import Api
    from podium.apiserver.writing import Options

JSON_PATCH: Final = "application/json-patch+json"
MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"


def accepted_types(kind: Kind) -> tuple[str, ...]:
    """Custom kinds have no strategic merge: nobody declares how their lists merge."""
    return (JSON_PATCH, MERGE, APPLY) if kind.custom else (JSON_PATCH, MERGE, STRATEGIC, APPLY)


def patched(
    api: Api, kind: Kind, old: Stored, body: Any, content_type: str, subresource: str, options: Options
) -> dict[str, Any]:
    """The object as the patch leaves it. `body` is the text that was sent, or what it decodes to."""
    if content_type not in accepted_types(kind):
        raise unsupported_media_type(accepted_types(kind))
    if content_type == APPLY:
        return applied(api, kind, old, body, subresource, options)
    current = forms.decoded(old, kind)
    if content_type == JSON_PATCH:
        result: dict[str, Any] = json_patch(current, json_operations(body))
        return result
    if content_type == MERGE:
        return merge_patch(current, merge_document(body))
    return strategic_merge(current, strategic_document(body), schema_of(kind).root)


def shown(body: Any, content_type: str) -> str:
    """The patch as a message about it shows it; empty where the message shows the whole object instead."""
    return go_text(strategic_document(body)) if content_type == STRATEGIC else ""


def applied(api: Api, kind: Kind, old: Stored | None, body: Any, subresource: str, options: Options) -> dict[str, Any]:
    """The object as server-side apply leaves it; None is an object that does not exist yet."""
    if not options.manager:
        raise _bad_options(required("fieldManager", "is required for apply patch"))
    configuration = applied_configuration(body)
    check_type(configuration, kind.api_version, kind.kind)
    return server_side_apply(
        forms.decoded(old, kind) if old is not None else None,
        configuration,
        manager=options.manager,
        force=options.force,
        schema=schema_of(kind).root,
        now=api.context(kind).now,
        subresource=subresource,
        reset=_reset(kind, subresource),
    )


def tracked(
    api: Api, kind: Kind, current: dict[str, Any], new: dict[str, Any], subresource: str, options: Options
) -> dict[str, Any]:
    """The new state with its managedFields brought up to date, where the object has any."""
    if "managedFields" not in current["metadata"]:
        new["metadata"].pop("managedFields", None)
        return new
    return track_update(
        current,
        new,
        manager=options.manager,
        schema=schema_of(kind).root,
        now=api.context(kind).now,
        subresource=subresource,
        reset=_reset(kind, subresource),
    )


def _reset(kind: Kind, subresource: str) -> tuple[str, ...]:
    """What a write through this endpoint cannot set, and so cannot own."""
    if subresource == "status":
        return ("spec", "metadata.labels") if kind.plural == "deployments" else ("spec",)
    return ("status",) if kind.has_status else ()


def _bad_options(cause: Cause) -> StatusError:
    details = {
        "group": "meta.k8s.io",
        "kind": "PatchOptions",
        "causes": [{"reason": cause.reason, "message": cause.message, "field": cause.field}],
    }
    message = f'PatchOptions.meta.k8s.io "" is invalid: {cause.field}: {cause.message}'
    return StatusError(422, "Invalid", message, details)
