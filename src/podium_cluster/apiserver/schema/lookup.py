"""Finds the schema of a kind: the facts of a built-in one, the definition of a custom one."""

from __future__ import annotations

from typing import Any, Protocol

from podium_cluster.apiserver.kind import Kind
from podium_cluster.apiserver.schema.builtin import built_in_schema
from podium_cluster.apiserver.schema.custom import CustomKind
from podium_cluster.apiserver.schema.fields import ANYTHING, FieldType, type_names


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

    def drop_empty(self, obj: dict[str, Any]) -> None:
        """Drop empty lists and maps that taking has kept for messages, in place."""
        ...


class OpenSchema:
    """The schema of a kind about which nothing is known: everything passes as it is."""

    root = ANYTHING

    def take(self, obj: dict[str, Any], raw: bytes | None = None) -> list[str]:
        return []

    def apply_defaults(self, obj: dict[str, Any]) -> None:
        return None

    def drop_empty(self, obj: dict[str, Any]) -> None:
        return None


_OPEN = OpenSchema()


def schema_of(kind: Kind) -> Schema:
    """The schema of a kind."""
    if isinstance(kind, CustomKind):
        return kind.schema
    return built_in_schema(kind) if (kind.group, kind.version, kind.kind) in type_names() else _OPEN
