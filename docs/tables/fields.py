"""Lists the fields of a configuration struct under their names in the file, with type, default and meaning.

What a field means is the text that stands below it in the source.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NamedTuple, cast

import msgspec
from msgspec import inspect as types

from podium.config.durations import encode_hook

_NAMES = {
    types.IntType: "integer",
    types.FloatType: "number",
    types.StrType: "text",
    types.BoolType: "true or false",
    types.BytesType: "base64",
    types.NoneType: "null",
    types.AnyType: "any",
}


class Field(NamedTuple):
    """One field; `default` is None when the field must be given."""

    name: str
    type: str
    default: tuple[Any] | None
    meaning: str


def fields_of(struct: type[msgspec.Struct], prefix: str = "") -> Iterator[Field]:
    """The fields, and after a field that is a struct those of that struct, as `field.name` or `field[].name`."""
    meanings = meanings_of(struct)
    described = cast(types.StructType, types.type_info(struct))
    for about, field in zip(described.fields, msgspec.structs.fields(struct), strict=True):
        name = f"{prefix}{about.encode_name}"
        yield Field(name, type_text(about.type), _default(field), meanings.get(field.name, ""))
        for inner, suffix in _structs(about.type):
            yield from fields_of(inner, f"{name}{suffix}.")


def type_text(of: types.Type) -> str:
    """A type in words: "list of text", "integer or null", "one of Least, Most"."""
    match of:
        case types.Metadata():
            return type_text(of.type)
        case types.UnionType():
            return " or ".join(sorted((type_text(each) for each in of.types), key=lambda text: text == "null"))
        case types.ListType() | types.VarTupleType() | types.SetType() | types.FrozenSetType():
            return f"list of {type_text(of.item_type)}"
        case types.TupleType():
            return f"list of {', '.join(map(type_text, of.item_types))}"
        case types.DictType():
            return f"{type_text(of.key_type)} → {type_text(of.value_type)}"
        case types.LiteralType():
            return f"one of {', '.join(map(str, of.values))}"
        case types.EnumType():
            return f"one of {', '.join(str(each.value) for each in of.cls)}"
        case types.StructType():
            return f"{of.cls.__name__}, as in a pod" if _of_kubernetes(of.cls) else "object"
        case types.CustomType():
            return of.cls.__name__.lower()
    return _NAMES[type(of)]


def _structs(of: types.Type) -> Iterator[tuple[type[msgspec.Struct], str]]:
    match of:
        case types.StructType() if not _of_kubernetes(of.cls):
            yield of.cls, ""
        case types.UnionType():
            for each in of.types:
                yield from _structs(each)
        case types.ListType() | types.VarTupleType():
            for inner, suffix in _structs(of.item_type):
                yield inner, f"[]{suffix}"
        case types.DictType():
            for inner, suffix in _structs(of.value_type):
                yield inner, f".*{suffix}"


def _of_kubernetes(struct: type[msgspec.Struct]) -> bool:
    """Whether Kubernetes' own reference has its fields."""
    return struct.__module__.startswith("podium.kube.")


def _default(field: msgspec.structs.FieldInfo) -> tuple[Any] | None:
    if field.required:
        return None
    if field.default is not msgspec.NODEFAULT:
        value = field.default
    else:
        value = cast(Callable[[], Any], field.default_factory)()
    return (msgspec.to_builtins(value, enc_hook=encode_hook),)


def meanings_of(struct: type[msgspec.Struct]) -> dict[str, str]:
    """The text below each field, of the class and of those it derives from."""
    found: dict[str, str] = {}
    for each in reversed(struct.__mro__):
        if not issubclass(each, msgspec.Struct) or each is msgspec.Struct:
            continue
        body = cast(ast.ClassDef, ast.parse(textwrap.dedent(inspect.getsource(each))).body[0]).body
        for field, text in pairwise(body):
            if (
                isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(text, ast.Expr)
                and isinstance(text.value, ast.Constant)
            ):
                found[field.target.id] = inspect.cleandoc(str(text.value.value))
    return found
