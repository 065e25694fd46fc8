"""Takes objects for a built-in kind by its schema, as strictly as the request asks."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import msgspec

from podium_cluster.apiserver.kind import Kind
from podium_cluster.apiserver.schema.decoding import NotPlain, struct_walk
from podium_cluster.apiserver.schema.defaults import defaults_of
from podium_cluster.apiserver.schema.fields import FieldType, struct_named, type_names
from podium_cluster.apiserver.schema.scrutiny import DecodingError, Scrutiny

_SHOWN_GROUPS: Final = ("resource.k8s.io",)
"""Groups whose complaints show whole values, in which an empty list is not an absent one."""


class BuiltInSchema:
    """What is known of one built-in kind; see `Schema` for what each method does."""

    def __init__(self, kind: Kind) -> None:
        name = type_names()[kind.group, kind.version, kind.kind]
        struct = struct_named(name)
        assert struct is not None, name
        self._struct = struct
        self._keeps_empty = kind.group in _SHOWN_GROUPS
        self._walk = struct_walk(struct, self._keeps_empty)
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
        scrutiny = Scrutiny()
        text = msgspec.json.encode(obj, order="deterministic") if raw is None else raw  # patched: keys come sorted
        taken = scrutiny.read(text, self._struct, self.root.go_type)
        obj.clear()
        obj.update(taken)
        try:
            self._walk(obj)
        except NotPlain:  # what Go takes and this does not: a quantity of a hundred digits
            raise DecodingError("the object holds a value that cannot be represented") from None
        return scrutiny.problems

    def drop_empty(self, obj: dict[str, Any]) -> None:
        if self._keeps_empty:
            struct_walk(self._struct)(obj)


def may_repeat_fields(raw: bytes, obj: Any) -> bool:
    """Whether a field may be given twice: the text then has more names in it than the object it was decoded to."""
    return raw.count(b'":') != msgspec.json.encode(obj).count(b'":')


@cache
def built_in_schema(kind: Kind) -> BuiltInSchema:
    return BuiltInSchema(kind)
