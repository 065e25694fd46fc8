"""Applies a JSON merge patch (RFC 7386): a map is merged key by key, null removes, anything else replaces.

As in the API server's library, nulls inside a list of the patch's own maps are dropped with their keys where the
target has no such value yet, while a list that replaces another value is taken as it stands.
"""

from __future__ import annotations

import copy
from typing import Any

from podium.kube.json_object import without_null_fields


def merge_patch(obj: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """The object with the patch merged in; neither argument is changed."""
    return _merged(copy.deepcopy(obj), copy.deepcopy(patch))


def _merged(target: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
            continue
        current = target.get(key)
        if isinstance(current, dict) and isinstance(value, dict):
            _merged(current, value)
        elif isinstance(current, dict):
            target[key] = value
        else:
            target[key] = without_null_fields(value)
    return target
