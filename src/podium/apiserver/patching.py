"""From a stored object and a patch to the object that is to be stored next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from podium.apiserver import bodies, forms
from podium.apiserver.errors import StatusError, bad_request, unsupported_media_type
from podium.apiserver.kinds import Kind
from podium.apiserver.store import Stored

if TYPE_CHECKING:
    from podium.apiserver.api import Api
    from podium.apiserver.writing import Options

JSON_PATCH: Final = "application/json-patch+json"
MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"


def decoded(body: bytes, media: str, kind: Kind, options: Options) -> Any:
    """The patch in a request's body; StatusError where it is none, or where nobody knows such patches."""
    if media == APPLY:
        return bodies.yaml_or_json(body, kind.kind)
    if media not in (JSON_PATCH, MERGE, STRATEGIC):
        raise StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise bad_request(f"error decoding patch: {error}") from None


def patched(
    api: Api, kind: Kind, old: Stored, body: Any, media: str, subresource: str, options: Options
) -> dict[str, Any]:
    """The object as the patch leaves it."""
    if media == APPLY:
        return applied(api, kind, old, body, subresource, options)
    return merged(forms.decoded(old, kind), body, media, kind)


def merged(current: dict[str, Any], body: Any, media: str, kind: Kind) -> dict[str, Any]:
    """An object with a patch of any kind but apply in it."""
    if media in (MERGE, STRATEGIC):
        made: dict[str, Any] = _merged(current, body)
        return made
    raise StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})


def applied(api: Api, kind: Kind, old: Stored | None, body: Any, subresource: str, options: Options) -> dict[str, Any]:
    """The object as server-side apply leaves it; None is an object that does not exist yet."""
    raise unsupported_media_type([JSON_PATCH, MERGE, STRATEGIC])


def _merged(current: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    merged = dict(current) if isinstance(current, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merged(merged.get(key), value)
    return merged
