"""Finds the schema of a kind: the facts of a built-in one, the definition of a custom one.

Objects are taken for a kind by its schema, as strictly as the request asks.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Protocol

import msgspec

from podium_cluster.apiserver.kind import Kind
from podium_cluster.apiserver.schema.custom import CustomKind
from podium_cluster.apiserver.schema.custom_fields import may_repeat_fields
from podium_cluster.apiserver.schema.decoding import NotPlain, struct_walk
from podium_cluster.apiserver.schema.defaults import defaults_of
from podium_cluster.apiserver.schema.fields import ANYTHING, FieldType, struct_named, type_names
from podium_cluster.apiserver.schema.strict_check import DecodingError, StrictDecoder


class BuiltInSchema:
    """What is known of one built-in kind; see `Schema` for what each method does."""

    def __init__(self, kind: Kind) -> None:
        name = type_names()[kind.group, kind.version, kind.kind]
        struct = struct_named(name)
        assert struct is not None, name
        self._struct = struct
        self._walk = struct_walk(struct)
        self.root = FieldType({"$ref": name})
        self.apply_defaults = defaults_of(kind)

    def take(self, obj: dict[str, Any], raw: bytes | None = None) -> list[str]:
        if raw is None or not may_repeat_fields(raw, obj):
            try:
                self._walk(obj)
            except NotPlain:
                pass
            else:
                return []
        decoder = StrictDecoder()
        text = msgspec.json.encode(obj, order="deterministic") if raw is None else raw  # patched: keys come sorted
        taken = decoder.read(text, self._struct, self.root.go_type)
        obj.clear()
        obj.update(taken)
        try:
            self._walk(obj)
        except NotPlain:  # what Go takes and this does not: a quantity of a hundred digits
            raise DecodingError("the object holds a value that cannot be represented") from None
        return decoder.problems


@cache
def built_in_schema(kind: Kind) -> BuiltInSchema:
    return BuiltInSchema(kind)


class Schema(Protocol):
    """What is known of a kind's fields."""

    @property
    def root(self) -> FieldType:
        """The type of the object, for patches."""
        ...

    def take(self, obj: dict[str, Any], raw: bytes | None = None) -> list[str]:
        """Take a decoded object for one of this kind, in place: unknown fields are dropped, values brought into their
        canonical form. `raw` is the text it was decoded from, where fields given twice can be found. Returns what is
        unknown or given twice ('unknown field "spec.foo"'); raises DecodingError for a value of the wrong type."""
        ...

    def apply_defaults(self, obj: dict[str, Any]) -> None:
        """Fill in what a taken object leaves out, in place."""
        ...


class OpenSchema:
    """The schema of a kind about which nothing is known: everything passes as it is."""

    root = ANYTHING

    def take(self, obj: dict[str, Any], raw: bytes | None = None) -> list[str]:
        return []

    def apply_defaults(self, obj: dict[str, Any]) -> None:
        return None


_OPEN = OpenSchema()


def schema_of(kind: Kind) -> Schema:
    """The schema of a kind."""
    if isinstance(kind, CustomKind):
        return kind.schema
    return built_in_schema(kind) if (kind.group, kind.version, kind.kind) in type_names() else _OPEN
