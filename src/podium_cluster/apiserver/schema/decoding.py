"""Takes a decoded JSON object for one of a kind: the quick way, for objects in which nothing is wrong.

kube-apiserver decodes into Go structs, and what comes out differs from what went in: nulls and empty optional values
are gone, struct fields that are always written are there, quantities and times have their canonical form. One walk
over the dictionary, with a function made once per type, does the same in place. At the first thing that is not as it
should be (an unknown field, a value of the wrong type) it gives up with `NotPlain`; strict_check.py then finds out what
to say, without haste.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final

from kubecel.quantity import QuantityError, canonical
from podium_cluster.apiserver.schema.fields import JSON_SCHEMA, FieldType, Struct, struct_named

# Checks a value and returns None when it can stay, else what takes its place.
Walk = Callable[[Any], Any]


class NotPlain(Exception):  # noqa: N818 -- not an error yet: a reason to look closer
    """Something about the value needs a closer look."""


NOT_PLAIN: Final = NotPlain()

_INTEGERS: Final = {"int32": 1 << 31, "int64": 1 << 63}
_ZEROS: Final[dict[str, Any]] = {
    "string": "",
    "bool": False,
    "int32": 0,
    "int64": 0,
    "float64": 0,
    "int-or-string": 0,
    "quantity": "0",
}
_RAW: Final = "runtime.RawExtension"
_MAX_REMEMBERED: Final = 10_000


@cache
def struct_walk(struct: Struct) -> Walk:
    """The function that takes a dictionary for a value of this type."""
    walks: dict[str, Walk | type] = {}
    always: list[tuple[str, Walk | None, Any]] = []

    def prepare() -> None:
        for name, field in struct.fields.items():
            walks[name] = field_walk(field)
            if field.always:
                inner = walks[name] if field.form == "struct" else None
                always.append((name, inner, _zero_of(field)))

    def walk(value: Any) -> None:
        if value.__class__ is not dict:
            raise NOT_PLAIN
        if not walks and struct.fields:
            prepare()
        empty = None
        for name, inner in value.items():
            wanted = walks.get(name)
            if not inner:
                if wanted is None:
                    raise NOT_PLAIN
                empty = [name] if empty is None else [*empty, name]
            elif wanted is not inner.__class__:
                if wanted is None or wanted.__class__ is type:
                    raise NOT_PLAIN
                replaced = wanted(inner)
                if replaced is not None:
                    value[name] = replaced
        if empty is not None:
            for name in empty:
                _settle_empty(value, name, struct.fields[name])
        for name, fill, zero in always:
            if name not in value:
                value[name] = {} if fill is not None else zero
                if fill is not None:
                    fill(value[name])

    return walk


def field_walk(field: FieldType) -> Walk | type:
    """How a field's value is taken: a Python type where that is all there is to check, else a function."""
    if field.form == "struct":
        assert field.struct is not None
        return struct_walk(field.struct)
    if field.form in ("list", "map"):
        assert field.element is not None
        inner = field_walk(field.element)
        return _list_walk(inner) if field.form == "list" else _map_walk(inner)
    match field.encoding:
        case "string":
            return str
        case "bool":
            return bool
        case "int32" | "int64":
            return _integer_walk(_INTEGERS[field.encoding])
        case "quantity":
            return _quantity
        case "int-or-string":
            return _int_or_string
        case "time":
            return take_time
        case "micro-time":
            return take_micro_time
        case "bytes":
            return _bytes
        case "float64":
            return _number
        case "schema-or-bool":
            return _schema_or_bool
        case "schema-or-array":
            return _schema_or_array
    return _anything


def _settle_empty(value: dict[str, Any], name: str, field: FieldType) -> None:
    """A null or an empty value: null counts as not given, and what is left out when empty goes."""
    inner = value[name]
    if inner is None:
        is_pointer_to_raw = field.go_type == _RAW and not field.always
        if (field.form != "anything" or field.encoding or is_pointer_to_raw) and not field.null_when_absent:
            del value[name]
        return
    if field.form == "struct":
        if field.struct is not None:
            struct_walk(field.struct)(inner)
        return
    fits = {"list": list, "map": dict, "string": str, "boolean": bool}.get(field.form)
    if fits is None:
        walk = field_walk(field)
        replaced = walk(inner)
        if replaced is not None:
            value[name] = replaced
    elif inner.__class__ is not fits or field.encoding in ("time", "micro-time"):
        raise NOT_PLAIN
    if field.omit_zero and field.encoding not in ("quantity", "int-or-string"):
        del value[name]
    elif field.null_when_absent and field.form in ("list", "map"):
        value[name] = None


def _zero_of(field: FieldType) -> Any:
    """What is written for a field that is always there; the default where the type itself declares one."""
    return _ZEROS.get(field.encoding) if field.form != "struct" else {}


def _list_walk(inner: Walk | type) -> Walk:
    if inner.__class__ is type:

        def walk_scalars(values: Any) -> None:
            if values.__class__ is not list:
                raise NOT_PLAIN
            for value in values:
                if value.__class__ is not inner:
                    raise NOT_PLAIN

        return walk_scalars

    def walk(values: Any) -> None:
        if values.__class__ is not list:
            raise NOT_PLAIN
        for index, value in enumerate(values):
            if value is None:
                raise NOT_PLAIN
            replaced = inner(value)
            if replaced is not None:
                values[index] = replaced

    return walk


def _map_walk(inner: Walk | type) -> Walk:
    if inner.__class__ is type:

        def walk_scalars(values: Any) -> None:
            if values.__class__ is not dict:
                raise NOT_PLAIN
            for value in values.values():
                if value.__class__ is not inner:
                    raise NOT_PLAIN

        return walk_scalars

    def walk(values: Any) -> None:
        if values.__class__ is not dict:
            raise NOT_PLAIN
        for name, value in values.items():
            if value is None:
                raise NOT_PLAIN
            replaced = inner(value)
            if replaced is not None:
                values[name] = replaced

    return walk


def _integer_walk(limit: int) -> Walk:
    def walk(value: Any) -> None:
        if value.__class__ is not int or not -limit <= value < limit:
            raise NOT_PLAIN

    return walk


def _number(value: Any) -> None:
    if value.__class__ is not float and value.__class__ is not int:
        raise NOT_PLAIN


def _anything(_: Any) -> None:
    return None


def _schema_or_bool(value: Any) -> None:
    if value.__class__ is not bool:
        _schema(value)


def _schema_or_array(value: Any) -> None:
    for schema in value if value.__class__ is list else (value,):
        _schema(schema)


def _schema(value: Any) -> None:
    struct = struct_named(JSON_SCHEMA)
    assert struct is not None
    struct_walk(struct)(value)


def _int_or_string(value: Any) -> None:
    if value.__class__ is not str and (value.__class__ is not int or not -(1 << 31) <= value < 1 << 31):
        raise NOT_PLAIN


_canonical: dict[Any, str] = {}  # quantities seen, in their canonical form; a cluster has few different ones


def _quantity(value: Any) -> str | None:
    if value.__class__ is bool:
        raise NOT_PLAIN
    try:
        known = _canonical.get(value)
        if known is None:
            known = canonical(value)
            if len(_canonical) >= _MAX_REMEMBERED:
                _canonical.clear()
            _canonical[value] = known
    except (QuantityError, TypeError):  # not a quantity, or not even a scalar
        raise NOT_PLAIN from None
    return None if known == value else known


_PLAIN_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_PLAIN_MICRO_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")


def take_time(value: Any) -> str | None:
    when = _moment(value)
    if _PLAIN_TIME.fullmatch(value):
        return None
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")


def take_micro_time(value: Any) -> str | None:
    when = _moment(value)
    if _PLAIN_MICRO_TIME.fullmatch(value):
        return None
    if "." not in value:
        raise NOT_PLAIN
    return when.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


_RFC3339: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")


def _moment(value: Any) -> datetime:
    if value.__class__ is not str or not _RFC3339.fullmatch(value):
        raise NOT_PLAIN
    try:
        return datetime.fromisoformat(value).astimezone(UTC)
    except (ValueError, OverflowError):
        raise NOT_PLAIN from None


def _bytes(value: Any) -> None:
    if value.__class__ is not str:
        raise NOT_PLAIN
    try:
        b64decode(value.replace("\r", "").replace("\n", ""), validate=True)
    except (Base64Error, ValueError):
        raise NOT_PLAIN from None
