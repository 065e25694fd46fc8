"""Gives rules the parts of a custom object as values: each with its schema, read when it is asked for.

A list that the schema calls a set is equal to another with the same elements in any order, one with keys to another
with the same entries; adding to them merges. A field that is null counts as not there. Values keep the JSON they came
from, because equality falls back on it where the schema says nothing.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterator
from typing import Any, Final

from kubecel.conversions import to_duration, to_timestamp
from kubecel.limits import look_at_the_time
from kubecel.metering import TOO_COSTLY, CancelledError
from kubecel.schema_types import Schema, escaped, unescaped, with_object_fields
from kubecel.values import MISSING, CelError, MapValue, no_overload

_GO_TYPES = {bool: "bool", int: "int64", float: "float64", str: "string", dict: "map[string]interface {}"}


_LOOK_EVERY: Final = 10_000


class Work:
    """How many elements may still be compared. Costs do not count what is below the first level of a list or
    map; this ends what would take too long all the same."""

    __slots__ = ("_look_at", "left")

    def __init__(self, left: int) -> None:
        self.left = left
        self._look_at = left - _LOOK_EVERY

    def spend(self, elements: int) -> None:
        self.left -= elements
        if self.left < self._look_at:
            self._look_at = self.left - _LOOK_EVERY
            look_at_the_time()
        if self.left < 0:
            raise CancelledError(TOO_COSTLY)


def structured(raw: Any, schema: Schema, work: Work) -> object:
    """The value that rules see; CelError where the JSON does not fit the schema."""
    if raw is None:
        if schema.get("nullable"):
            return None
        raise CelError("invalid data, got null for schema with nullable=false")
    if schema.get("x-kubernetes-int-or-string"):
        if isinstance(raw, (str, int)) and not isinstance(raw, bool):
            return raw
        raise CelError("invalid data, expected XIntOrString value to be either a string or integer")
    match schema.get("type"), raw:
        case "object", dict():
            embedded = schema.get("x-kubernetes-embedded-resource")
            return StructuredMap(raw, with_object_fields(schema) if embedded else schema, work)
        case "object", _:
            raise CelError("invalid data, expected a map for the provided schema with type=object")
        case "array", list():
            return StructuredList(raw, schema, work)
        case "array", _:
            raise CelError("invalid data, expected an array for the provided schema with type=array")
        case "string", str():
            return _string(raw, schema.get("format", ""))
        case "number", int() | float() if not isinstance(raw, bool):
            return float(raw)
        case "integer", int() if not isinstance(raw, bool):
            return raw
        case "boolean", bool():
            return raw
        case ("string" | "number" | "integer" | "boolean") as name, _:
            wanted = {"number": "float", "integer": "int", "boolean": "bool"}.get(name, name)
            raise CelError(f"invalid data, expected {wanted}, got {_GO_TYPES.get(type(raw), '[]interface {}')}")
    return PreservedValue(raw)


def _string(text: str, form: str) -> object:
    match form:
        case "duration":
            return to_duration(text)
        case "date":
            return to_timestamp(f"{text}T00:00:00Z")
        case "date-time":
            return to_timestamp(text.upper())
        case "byte":
            try:
                return base64.b64decode(text, validate=True)
            except binascii.Error as error:
                raise CelError(f"Invalid byte formatted string {text}: {error}") from None
    return text


class PreservedValue:
    """A part that the schema says nothing about: it can only be compared."""

    __slots__ = ("raw",)

    def __init__(self, raw: Any) -> None:
        self.raw = raw


Equality = Callable[[object, object], bool]


def structured_equal(one: Structured, other: object, equal: Equality) -> bool:
    """Whether a part of an object is equal to another value; `equal` compares what is in them."""
    if isinstance(one, PreservedValue):
        return same_json(one.raw, _json_of(other))
    return one.equals(other, equal)


def _elements_equal(one: object, other: object, equal: Equality) -> bool:
    """Whether elements are equal. Unlike `==`, a list or map has no overload for a null."""
    if other is None and isinstance(one, (MapValue, list)):
        raise no_overload()
    return equal(one, other)


class StructuredMap(MapValue):
    """An object or a map of a custom object, with its schema."""

    __slots__ = ("_found", "_is_object", "_properties", "_rest", "_work", "raw")

    def __init__(self, raw: dict[str, Any], schema: Schema, work: Work) -> None:
        self.raw = raw
        self._work = work
        self.default = MISSING
        properties = schema.get("properties")
        rest = schema.get("additionalProperties")
        self._is_object = bool(properties)
        self._properties: dict[str, Schema] = properties or {}
        self._rest: Schema | None = rest if isinstance(rest, dict) and not properties else None
        self._found: dict[str, object] = {}

    def get(self, key: object) -> object:
        if not isinstance(key, str):
            raise no_overload()
        name = unescaped(key) if self._is_object else key
        if name is None or name not in self.raw:
            return MISSING
        found = self._found.get(name, MISSING)
        if found is MISSING:
            found = self._found[name] = self._read(name)
        if isinstance(found, CelError):
            raise found
        return found

    def _read(self, name: str) -> object:
        raw = self.raw[name]
        schema = self._schema(name)
        if schema is None or (raw is None and self._is_object):
            return MISSING
        try:
            return structured(raw, schema, self._work)
        except CelError as error:
            return error

    def _schema(self, name: str) -> Schema | None:
        return self._rest if self._rest is not None else self._properties.get(name)

    def __contains__(self, key: object) -> bool:
        return self.get(key) is not MISSING

    def __len__(self) -> int:
        return len(self.raw)

    def items(self) -> Iterator[tuple[object, object]]:
        for name in self.raw:
            if self._schema(name) is not None:
                identifier = (escaped(name) if self._is_object else None) or name
                value = self.get(identifier)
                yield identifier, None if value is MISSING else value

    def copied(self) -> MapValue:
        other = MapValue()
        for key, value in self.items():
            other.put(key, value)
        return other

    def equals(self, other: object, equal: Equality) -> bool:
        if not isinstance(other, MapValue):
            raise no_overload()
        if len(self) != len(other):
            return False
        self._work.spend(len(self))
        for name, raw in self.raw.items():
            if self._schema(name) is not None:
                own, theirs = self.get(name), other.get(name)
                if (own is MISSING) != (theirs is MISSING):
                    return False
                if own is not MISSING and not _elements_equal(own, theirs, equal):
                    return False
            elif not isinstance(other, StructuredMap):
                raise no_overload()
            elif name in other.raw and not same_json(raw, other.raw[name]):
                return False
        return True


class StructuredList(list[object]):
    """A list of a custom object: one in order, a set, or one whose entries have keys."""

    __slots__ = ("_items", "_keys", "_kind", "_work", "raw")

    def __init__(self, raw: list[Any], schema: Schema, work: Work) -> None:
        self._items: Schema = schema.get("items") or {}
        super().__init__(structured(each, self._items, work) for each in raw)
        self._work = work
        self.raw = raw
        self._kind = schema.get("x-kubernetes-list-type", "atomic")
        self._keys = [escaped(key) or key for key in schema.get("x-kubernetes-list-map-keys") or ()]

    def _key(self, element: object) -> object:
        """What tells an entry from others, from its JSON."""
        if self._kind == "set":
            if isinstance(element, (dict, list)):
                kind = _GO_TYPES.get(type(element), "[]interface {}")
                raise CancelledError(f"internal error: runtime error: hash of unhashable type {kind}")
            return type(element), element
        if not isinstance(element, dict):
            return object()
        return tuple((type(element.get(key)), element.get(key)) for key in self._keys)

    def equals(self, other: object, equal: Equality) -> bool:
        if not isinstance(other, list):
            raise no_overload()
        if len(self) != len(other):
            return False
        self._work.spend(len(self))
        if self._kind == "set":
            own = {self._key(each) for each in self.raw}
            return all(self._key(_json_of(each)) in own for each in other)
        if self._kind == "map":
            entries = {self._key(raw): each for raw, each in zip(self.raw, self, strict=True)}
            for each in other:
                key = self._key(_json_of(each))
                if key not in entries or not _elements_equal(entries[key], each, equal):
                    return False
            return True
        return all(_elements_equal(one, each, equal) for one, each in zip(self, other, strict=True))

    def plus(self, other: list[object]) -> list[object]:
        """Both together: sets as their union, entries with keys in the place of those that have the same."""
        if self._kind not in ("set", "map"):
            return list(self) + other
        merged = list(self.raw)
        places = {self._key(raw): at for at, raw in enumerate(merged)}
        for each in other:
            raw = _json_of(each)
            key = self._key(raw)
            if key not in places:
                places[key] = len(merged)
                merged.append(raw)
            elif self._kind == "map":
                merged[places[key]] = raw
        schema = {"x-kubernetes-list-type": self._kind, "x-kubernetes-list-map-keys": self._keys, "items": self._items}
        return StructuredList(merged, schema, self._work)

    def holds(self, element: object, equal: Equality) -> bool:
        """Whether it has an element; an error of a comparison counts where none is equal."""
        self._work.spend(len(self))
        error: CelError | None = None
        for each in self:
            try:
                if _elements_equal(each, element, equal):
                    return True
            except CelError as raised:
                error = error or raised
        if error is not None:
            raise error
        return False


def _json_of(value: object) -> Any:
    """The JSON that a value came from; scalars are their own."""
    return value.raw if isinstance(value, (StructuredMap, StructuredList, PreservedValue)) else value


def without_schema(value: object) -> object:
    """The value as plain JSON: what an optional gives out, because cel-go unwraps it without the schema."""
    return _plain(value.raw) if isinstance(value, Structured) else value


def _plain(raw: Any) -> object:
    if isinstance(raw, dict):
        return MapValue({name: _plain(inner) for name, inner in raw.items()})
    return [_plain(inner) for inner in raw] if isinstance(raw, list) else raw


Structured = StructuredMap | StructuredList | PreservedValue
"""What a custom object is made of, apart from scalars."""


def same_json(one: Any, other: Any) -> bool:
    """Whether two decoded values are the same, types included.

    >>> same_json({"a": [1]}, {"a": [1]}), same_json({"a": [1]}, {"a": [1.0]})
    (True, False)
    """
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same_json(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same_json, one, other))
    return bool(one == other)
