"""Declares the types that a rule of a structural schema sees: `self` and `oldSelf`, field by field.

Objects become types of their own, with the fields that have an identifier; lists and maps know the most elements they
can have in one request, strings the most bytes. Estimates of what a rule costs come from these. What the schema says
nothing about (preserved unknown fields) has no type and cannot be read. At the root of a resource there are always
apiVersion, kind, metadata.name and metadata.generateName.

Also turns the names of fields into identifiers of CEL and back: `app-name` is `app__dash__name` in a rule.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kubecel import types
from kubecel.checker import Environment
from kubecel.metering import Span
from kubecel.strconv import words
from kubecel.types import CelType

Schema = Mapping[str, Any]

MAX_REQUEST: Final = 3 * 1024 * 1024
"""The most bytes that a request can have."""
SELF_TYPE: Final = "selfType0"
"""What messages call the type of `self` where it is an object; kube-apiserver draws a number for each compilation."""
_NAMED: Final = {
    "kind": {"type": "string"},
    "apiVersion": {"type": "string"},
    "metadata": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "generateName": {"type": "string"}},
    },
}
_TIMES: Final = {
    "duration": (types.DURATION, 3, 32),
    "date": (types.TIMESTAMP, 12, 12),
    "date-time": (types.TIMESTAMP, 21, 32),
}
"""The type of strings with a format, and the least and the most bytes of one."""
_SCALARS: Final = {"boolean": (types.BOOL, 4), "number": (types.DOUBLE, 1), "integer": (types.INT, 1)}
RESERVED: Final = frozenset(
    words(
        "true false null in as break const continue else for function if import let loop package namespace return var "
        "void while"
    )
)
_WRITTEN: Final = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_READ: Final = {written.strip("_"): name for name, written in _WRITTEN.items()}
_NAME: Final = re.compile(r"[a-zA-Z_./-][a-zA-Z0-9_./-]*")
_REPLACED: Final = re.compile(r"__|[./-]")
_SEQUENCE: Final = re.compile(r"__[^_]+__")


@dataclass(frozen=True)
class DeclaredType:
    """The type of a part of an object. `most`: elements or bytes it can have; `least_bytes`: its shortest JSON."""

    scalar: CelType | None
    most: int
    least_bytes: int
    fields: Mapping[str, DeclaredType] = field(default_factory=dict)
    element: DeclaredType | None = None
    is_map: bool = False

    def at(self, steps: tuple[str, ...]) -> DeclaredType | None:
        """The type at the end of a path, in the words of cost estimates."""
        found: DeclaredType | None = self
        for step in steps:
            if found is None:
                return None
            match step:
                case "@items" | "@values":
                    found = found.element
                case "@keys":
                    found = _KEY if found.is_map else None
                case _:
                    found = found.fields.get(step)
        return found


_KEY: Final = DeclaredType(types.STRING, 0, 2)


def declare(schema: Schema, *, is_root: bool) -> DeclaredType | None:
    """The type of what a schema describes; None where rules cannot see it."""
    if schema.get("x-kubernetes-int-or-string"):
        return DeclaredType(types.DYN, _most_characters(schema, MAX_REQUEST - 2), 1)
    match schema.get("type"):
        case "array":
            return _list(schema)
        case "object":
            return _object(with_object_fields(schema) if is_root else schema)
        case "string":
            return _string(schema)
        case str(name) if name in _SCALARS:
            scalar, least = _SCALARS[name]
            return DeclaredType(scalar, 0, least)
    return None


def with_object_fields(schema: Schema) -> Schema:
    """The schema with the fields that every resource has, in their plain form unless it declares all of them."""
    properties = schema.get("properties") or {}
    meta = (properties.get("metadata") or {}).get("properties") or {}
    strings = [properties.get(name) for name in ("kind", "apiVersion")] + [meta.get("name"), meta.get("generateName")]
    declared = all(each is not None and each.get("type") == "string" for each in strings)
    if declared and properties["metadata"].get("type") == "object":
        return schema
    return {**schema, "properties": {**properties, **_NAMED}}


def _most_characters(schema: Schema, otherwise: int) -> int:
    longest = schema.get("maxLength")
    return otherwise if longest is None else max(0, int(longest)) * 4


def _list(schema: Schema) -> DeclaredType | None:
    items = schema.get("items")
    element = declare(items, is_root=bool(items.get("x-kubernetes-embedded-resource"))) if items else None
    if element is None:
        return None
    most = schema.get("maxItems")
    most = (MAX_REQUEST - 2) // (element.least_bytes + 1) if most is None else max(0, int(most))
    return DeclaredType(None, most, 2, element=element)


def _object(schema: Schema) -> DeclaredType | None:
    rest = schema.get("additionalProperties")
    if isinstance(rest, dict):
        element = declare(rest, is_root=bool(rest.get("x-kubernetes-embedded-resource")))
        if element is None:
            return None
        most = schema.get("maxProperties")
        most = (MAX_REQUEST - 2) // (element.least_bytes + 6) if most is None else max(0, int(most))
        return DeclaredType(None, most, 2, element=element, is_map=True)
    fields, least = {}, 2
    wanted = frozenset(schema.get("required") or ())
    for name, inner in (schema.get("properties") or {}).items():
        declared = declare(inner, is_root=bool(inner.get("x-kubernetes-embedded-resource")))
        if declared is None:
            continue
        identifier = escaped(name)
        if identifier is not None:
            fields[identifier] = declared
        if name in wanted and inner.get("default") is None:
            least += len(name.encode()) + declared.least_bytes + 4
    return DeclaredType(None, 0, least, fields)


def _string(schema: Schema) -> DeclaredType:
    form = schema.get("format")
    if form in _TIMES:
        scalar, least, most = _TIMES[form]
        return DeclaredType(scalar, most, least)
    if form == "byte":
        longest = schema.get("maxLength")
        return DeclaredType(types.BYTES, MAX_REQUEST - 2 if longest is None else max(0, int(longest)), 2)
    choices = schema.get("enum")
    otherwise = MAX_REQUEST - 2
    if choices:
        otherwise = max((len(each.encode()) for each in choices if isinstance(each, str)), default=0)
    return DeclaredType(types.STRING, _most_characters(schema, otherwise), 2)


def rule_environment(declared: DeclaredType, *, optional_old: bool) -> Environment:
    """What a rule at this type may name; `optional_old`: whether oldSelf is an optional."""
    fields: dict[str, Mapping[str, CelType]] = {}
    own = _named(declared, SELF_TYPE, fields)
    return Environment({"self": own, "oldSelf": types.optional_of(own) if optional_old else own}, fields)


def _named(declared: DeclaredType, name: str, fields: dict[str, Mapping[str, CelType]]) -> CelType:
    """The type for the checker; the fields of object types are collected under the names they get."""
    if declared.scalar is not None:
        return declared.scalar
    if declared.element is not None:
        if declared.is_map:
            return types.map_of(types.STRING, _named(declared.element, f"{name}.@elem", fields))
        return types.list_of(_named(declared.element, f"{name}.@idx", fields))
    own = {each: _named(inner, f"{name}.{each}", fields) for each, inner in declared.fields.items()}
    keywords = {each: own[f"__{each}__"] for each in RESERVED if f"__{each}__" in own and each not in own}
    fields[name] = own | keywords
    return types.object_type(name)


def sizes_of(declared: DeclaredType, path: tuple[str, ...]) -> Span | None:
    """How large the value at a path from `self` or `oldSelf` can be; None where nothing is known."""
    found = declared.at(path[1:])
    return None if found is None else Span(0, found.most)


def escaped(name: str) -> str | None:
    """The identifier that a rule reads a field by; None where there is none.

    >>> escaped("app.kubernetes.io/name")
    'app__dot__kubernetes__dot__io__slash__name'
    """
    if name in RESERVED:
        return f"__{name}__"
    if not _NAME.fullmatch(name):
        return None
    return _REPLACED.sub(lambda found: _WRITTEN[found[0]], name)


def unescaped(identifier: str) -> str | None:
    """The name of the field that a rule reads by an identifier; None for a sequence that stands for nothing."""
    if "__" not in identifier:
        return identifier
    wrong = False

    def replaced(found: re.Match[str]) -> str:
        nonlocal wrong
        contents = found[0][2:-2]
        if contents in _READ:
            return _READ[contents]
        wrong = wrong or contents not in RESERVED or found[0] != identifier
        return contents

    name = _SEQUENCE.sub(replaced, identifier)
    return None if wrong else name
