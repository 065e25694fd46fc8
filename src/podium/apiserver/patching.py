"""From a stored object and a patch to the object that is to be stored next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from podium.apiserver import forms
from podium.apiserver.errors import unsupported_media_type
from podium.apiserver.kinds import Kind
from podium.apiserver.store import Stored

if TYPE_CHECKING:
    from podium.apiserver.api import Api
    from podium.apiserver.writing import Options

JSON_PATCH: Final = "application/json-patch+json"
MERGE: Final = "application/merge-patch+json"
STRATEGIC: Final = "application/strategic-merge-patch+json"
APPLY: Final = "application/apply-patch+yaml"


def patched(
    api: Api, kind: Kind, old: Stored, body: Any, content_type: str, subresource: str, options: Options
) -> dict[str, Any]:
    """The object as the patch leaves it."""
    current = forms.decoded(old, kind)
    if content_type in (MERGE, STRATEGIC):
        merged: dict[str, Any] = _merged(current, body)
        return merged
    raise unsupported_media_type([JSON_PATCH, MERGE, STRATEGIC, APPLY])


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
