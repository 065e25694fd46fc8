"""Converts objects between the form they are stored in and the kind they are asked for as.

Versions of a custom resource differ in their apiVersion only. Events are kept in the core form; events.k8s.io spells
some of the same fields differently, and keeps the old spellings as `deprecated…`.
"""

from typing import Any, Final

import msgspec

from podium_cluster.apiserver.kind import Kind
from podium_cluster.apiserver.store.collection import Stored

_EVENTS: Final = "events"
_NEW_NAMES: Final = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_CORE_NAMES: Final = {new: old for old, new in _NEW_NAMES.items()}
# Both forms write these even when they say nothing.
_CORE_ALWAYS: Final[dict[str, Any]] = {
    "involvedObject": {},
    "source": {},
    "firstTimestamp": None,
    "lastTimestamp": None,
    "eventTime": None,
    "reportingComponent": "",
    "reportingInstance": "",
}


def storage_kind(kind: Kind) -> Kind:
    """The kind in whose form objects of this kind are kept."""
    return kind.stored_as or kind


def to_storage(kind: Kind, obj: dict[str, Any]) -> dict[str, Any]:
    """The object in the form it is kept in; may be the same dictionary."""
    if kind.stored_in != _EVENTS:
        return obj
    renamed = obj if kind.stored_as is None else {_CORE_NAMES.get(key, key): value for key, value in obj.items()}
    return {**renamed, **{key: value for key, value in _CORE_ALWAYS.items() if renamed.get(key) is None}}


def from_storage(kind: Kind, obj: dict[str, Any]) -> dict[str, Any]:
    """A kept object in the form of `kind`; may be the same dictionary."""
    if kind.stored_in == _EVENTS and kind.stored_as is not None:
        obj = {
            _NEW_NAMES.get(key, key): value
            for key, value in obj.items()
            if value or key not in ("reportingComponent", "reportingInstance")
        }
    obj["kind"], obj["apiVersion"] = kind.kind, kind.api_version
    return obj


def decoded(stored: Stored, kind: Kind) -> dict[str, Any]:
    """The stored object as `kind` has it."""
    return stored.decode() if stored.kind is kind else from_storage(kind, stored.decode())


def presented(stored: Stored, kind: Kind) -> bytes:
    """The JSON of the stored object as `kind` has it."""
    if stored.kind is kind or stored.kind == kind:
        return stored.raw
    if kind.stored_in == _EVENTS:
        return msgspec.json.encode(from_storage(kind, stored.decode()))
    return kind.head + stored.raw[len(stored.kind.head) :]
