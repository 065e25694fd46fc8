"""Validates conditions in the form that newer kinds share: type, status, reason, message, time of the last change."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from podium_cluster.apiserver.errors import duplicate, invalid_value, not_supported, required
from podium_cluster.apiserver.writes.validation.wording import Causes, Obj, label_name, too_long

_STATUSES: Final = ("False", "True", "Unknown")
_REASON_LENGTH, _MESSAGE_LENGTH = 1 << 10, 32 << 10
_REASON: Final = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_NOT_REASON: Final = (
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_' (e.g. 'my_name',  or 'MY_NAME',  or "
    f"'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex used for validation is '{_REASON}')"
)


def conditions(path: str, given: Sequence[dict[str, Any]]) -> Causes:
    """Each condition, and each type once."""
    seen: set[str] = set()
    for at, condition in enumerate(given):
        kind = condition.get("type", "")
        if kind in seen:
            yield duplicate(f"{path}[{at}].type", kind)
        seen.add(kind)
        yield from _condition(f"{path}[{at}]", condition)


def _condition(path: str, condition: Obj) -> Causes:
    yield from label_name(f"{path}.type", condition.get("type", ""))
    if condition.get("status") not in _STATUSES:
        yield not_supported(f"{path}.status", condition.get("status", ""), _STATUSES)
    generation = condition.get("observedGeneration") or 0
    if generation < 0:
        yield invalid_value(f"{path}.observedGeneration", generation, "must be greater than or equal to zero")
    if not condition.get("lastTransitionTime"):
        yield required(f"{path}.lastTransitionTime")
    reason = condition.get("reason", "")
    if not reason:
        yield required(f"{path}.reason")
    elif not re.fullmatch(_REASON, reason):
        yield invalid_value(f"{path}.reason", reason, _NOT_REASON)
    if len(reason.encode()) > _REASON_LENGTH:
        yield too_long(f"{path}.reason", _REASON_LENGTH)
    if len(condition.get("message", "").encode()) > _MESSAGE_LENGTH:
        yield too_long(f"{path}.message", _MESSAGE_LENGTH)
