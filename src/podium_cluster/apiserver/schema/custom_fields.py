"""Drops unknown fields and nulls of custom objects and fills in defaults, by their structural schema.

A field is known when the schema has a property for it, when the object is a map (`additionalProperties`), or when the
schema preserves unknown fields there; inside a preserved part only what is described is looked at. A null that the
schema does not allow counts as not given. Objects embedded in others have apiVersion, kind and metadata of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from typing import Any, Final

import msgspec

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import too_much_filled_in
from podium_cluster.apiserver.schema.fields import struct_named
from podium_cluster.apiserver.schema.strict_check import Pairs, as_written

MOST_FILLED: Final = 4 << 20
"""Bytes of all defaults of one object."""
_OBJECT_FIELDS: Final = ("apiVersion", "kind", "metadata")
_OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED: Final = "x-kubernetes-embedded-resource"


def prune(value: Any, schema: JsonObject, path: str) -> list[str]:
    """Drop every field that the schema does not know, in place; the paths of those dropped."""
    dropped: list[str] = []
    if isinstance(value, list):
        items = schema.get("items")
        for index, inner in enumerate(value):
            dropped += prune(inner, items if isinstance(items, dict) else {_PRESERVE: True}, f"{path}[{index}]")
    elif isinstance(value, dict):
        embedded = schema.get(_EMBEDDED) and path
        for name in list(value):
            where = f"{path}.{name}" if path else name
            if embedded and name in _OBJECT_FIELDS:
                if name == "metadata" and isinstance(value[name], dict):
                    dropped += _prune_metadata(value[name], where)
                continue
            inner = known_field(schema, name)
            if inner is None:
                del value[name]
                dropped.append(where)
            else:
                dropped += prune(value[name], inner, where)
    return dropped


def drop_nulls(value: Any, schema: JsonObject) -> None:
    """Drop the nulls that the schema does not allow, in place."""
    for holder, name, inner in described(value, schema):
        if isinstance(holder, dict) and holder[name] is None and not inner.get("nullable"):
            del holder[name]
        else:
            drop_nulls(holder[name], inner)


def fill_in(value: Any, schema: JsonObject) -> None:
    """Fill in defaults, in place: those of a part come after the default that made the part.

    StatusError where they come to more than MOST_FILLED bytes: each of thousands of entries may get all that a
    definition can hold.
    """
    _fill_in(value, schema, _Filled())


class _Filled:
    """The bytes that were filled in so far."""

    def __init__(self) -> None:
        self._bytes = 0
        self._sizes: dict[int, int] = {}
        """Bytes of a default, by the identity of its schema."""

    def add(self, name: str, schema: JsonObject) -> None:
        size = self._sizes.get(id(schema))
        if size is None:
            size = self._sizes[id(schema)] = len(name) + len(msgspec.json.encode(schema["default"]))
        self._bytes += size
        if self._bytes > MOST_FILLED:
            raise too_much_filled_in(MOST_FILLED)


def _fill_in(value: Any, schema: JsonObject, filled: _Filled) -> None:
    if isinstance(value, dict):
        for name, inner in (schema.get("properties") or {}).items():
            if "default" in inner and inner["default"] is not None and name not in value:
                filled.add(name, inner)
                value[name] = deepcopy(inner["default"])
    for holder, name, inner in described(value, schema):
        _fill_in(holder[name], inner, filled)


def described(value: Any, schema: JsonObject) -> Iterator[tuple[Any, Any, JsonObject]]:
    """The parts of a value that the schema describes: what holds it, its name or index, its schema."""
    if isinstance(value, list):
        items = schema.get("items")
        if isinstance(items, dict):
            for index in range(len(value)):
                yield value, index, items
    elif isinstance(value, dict):
        for name in list(value):
            inner = known_field(schema, name)
            if inner:
                yield value, name, inner


def known_field(schema: JsonObject, name: str) -> JsonObject | None:
    """The schema of a field: {} when anything goes, None when there is no such field."""
    inner: JsonObject | None = (schema.get("properties") or {}).get(name)
    if inner is not None:
        return inner if not schema.get(_PRESERVE) or inner.get("type") else {**inner, _PRESERVE: True}
    rest = schema.get("additionalProperties")
    if isinstance(rest, dict):
        return rest
    return {_PRESERVE: True} if rest is True or schema.get(_PRESERVE) else None


def repeated_fields(raw: bytes) -> list[str]:
    """The paths of fields given more than once in a text that is valid JSON, in its order."""
    return list(dict.fromkeys(_repeated(as_written(raw), "")))


def _repeated(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, Pairs):
        times: Counter[str] = Counter()
        for name, inner in value:
            where = f"{path}.{name}" if path else name
            times[name] += 1
            if times[name] > 1:
                yield where
            yield from _repeated(inner, where)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _repeated(inner, f"{path}[{index}]")


def _prune_metadata(metadata: dict[str, Any], path: str) -> list[str]:
    struct = struct_named(_OBJECT_META)
    assert struct is not None
    unknown = [name for name in metadata if name not in struct.fields]
    for name in unknown:
        del metadata[name]
    return [f"{path}.{name}" for name in unknown]


def may_repeat_fields(raw: bytes, obj: Any) -> bool:
    """Whether a field may be given twice: the text then has more names in it than the object it was decoded to."""
    return raw.count(b'":') != msgspec.json.encode(obj).count(b'":')
