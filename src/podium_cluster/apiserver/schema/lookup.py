"""Finds the schema of a kind: the facts of a built-in one, the definition of a custom one.

Objects are taken for a kind by its schema, as strictly as the request asks.
It fills in the defaults of built-in kinds: `restartPolicy: Always`, `replicas: 1`.

Defaults belong to types, wherever those occur: a probe's period is ten seconds in a pod and in a deployment's template.
So a kind brings constants by type and rules by type, for what depends on other fields (kinds/), and there is what the
types themselves declare; for each kind the few places that matter are worked out once. A type's own defaults come
before those of what it contains.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import cache
from typing import Any, Final, Protocol

import msgspec

from kubecel.quantity import format_nano, parse
from podium_cluster.apiserver.kind import Defaults, Kind
from podium_cluster.apiserver.schema.custom import CustomKind
from podium_cluster.apiserver.schema.custom_fields import may_repeat_fields
from podium_cluster.apiserver.schema.decoding import NotPlain, struct_walk
from podium_cluster.apiserver.schema.fields import ANYTHING, FieldType, Struct, struct_named, type_names
from podium_cluster.apiserver.schema.strict_check import DecodingError, StrictDecoder

Fill = Callable[[dict[str, Any]], None]

_NANO_PER_MILLI: Final = 10**6


def defaults_of(kind: Kind) -> Fill:
    """The function that fills in what an object of the kind leaves out, in place."""
    struct = struct_named(type_names()[kind.group, kind.version, kind.kind])
    assert struct is not None
    return _fill_of(struct, (), kind.defaults) or _nothing


def _nothing(_: dict[str, Any]) -> None:
    return None


@cache
def _fill_of(struct: Struct, above: tuple[Struct, ...], defaults: Defaults) -> Fill | None:
    """What fills in a value of this type, or None when there is nothing to do in it, however deep."""
    if struct in above:  # a type that contains itself: schemas do, and they have no defaults
        return None
    known = defaults.constants.get(_short(struct), {})
    constants = {**_declared(struct), **{name: value for name, value in known.items() if not _mutable(value)}}
    copied = {name: value for name, value in known.items() if _mutable(value)}
    rule = defaults.rules.get(_short(struct))
    nulls = [name for name, field in struct.fields.items() if field.null_when_absent]
    inner: dict[str, tuple[str, Fill]] = {}
    for name, field in struct.fields.items():
        if field.go_type == "v1.ResourceList":
            inner[name] = "struct", _round_up
        elif (within := _fill_of_field(field, (*above, struct), defaults)) is not None:
            inner[name] = field.form, within
    if not constants and not copied and rule is None and not inner and not nulls:
        return None

    def fill(value: dict[str, Any]) -> None:
        for name, default in constants.items():
            if value.get(name) in ("", None):  # decoding writes some strings that were not given
                value[name] = default
        for name, default in copied.items():
            if name not in value:
                value[name] = deepcopy(default)
        if rule is not None:
            rule(value)
        for name, found in value.items():
            if name in inner and found is not None:
                form, fill_inner = inner[name]
                if form == "struct":
                    fill_inner(found)
                else:
                    for each in found if form == "list" else found.values():
                        fill_inner(each)
        for name in nulls:
            value.setdefault(name, None)

    return fill


def _fill_of_field(field: FieldType, above: tuple[Struct, ...], defaults: Defaults) -> Fill | None:
    inner = field.element if field.form in ("list", "map") else field
    return _fill_of(inner.struct, above, defaults) if inner is not None and inner.struct is not None else None


def _declared(struct: Struct) -> dict[str, Any]:
    """The defaults that the type itself declares, except those that decoding writes anyway."""
    return {
        name: field.default
        for name, field in struct.fields.items()
        if field.default is not None and not field.always and (field.default or not field.omit_zero)
    }


def _round_up(amounts: dict[str, Any]) -> None:
    """Amounts of resources have no parts smaller than a thousandth."""
    for name, amount in amounts.items():
        if amount.endswith(("n", "u")):
            amounts[name] = format_nano(-(-parse(amount) // _NANO_PER_MILLI) * _NANO_PER_MILLI)


def _mutable(value: object) -> bool:
    return isinstance(value, dict | list)


def _short(struct: Struct) -> str:
    """ "core.v1.Pod" of "io.k8s.api.core.v1.Pod"."""
    return ".".join(struct.type_name.split(".")[-3:])


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
