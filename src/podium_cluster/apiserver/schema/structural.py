"""Checks that the schema of a custom kind is structural, as kube-apiserver demands and words it.

Structural means that each field's type is said once, outside of anyOf and its like, so that pruning and defaulting
know what they look at. The usual mistakes are worded as the server words them.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Final

from kubecel.re2 import PatternError, compile_pattern
from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import Cause, field_forbidden, invalid_value, not_supported, required
from podium_cluster.apiserver.schema.custom_fields import prune
from podium_cluster.apiserver.schema.custom_values import problems_of

Causes = Iterator[Cause]

_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_LIST_TYPES: Final = ("atomic", "set", "map")
_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED: Final = "x-kubernetes-embedded-resource"
_LIST_TYPE: Final = "x-kubernetes-list-type"
_RULES: Final = "x-kubernetes-validations"
_KEYS: Final = "x-kubernetes-list-map-keys"
_NOT_IN_JUNCTORS: Final = (
    "type",
    "additionalProperties",
    "default",
    "title",
    "description",
    "nullable",
    _PRESERVE,
    _RULES,
)


def structural_problems(schema: JsonObject, field: str) -> Causes:
    """What keeps a schema from being a custom kind's; `field` is where it stands."""
    if not schema.get("type"):
        yield required(f"{field}.type", "must not be empty at the root")
        return
    if schema["type"] != "object":
        yield invalid_value(f"{field}.type", schema["type"], "must be object at the root")
        return
    metadata = (schema.get("properties") or {}).get("metadata")
    if metadata is not None and not set(metadata.get("properties") or {}) <= {"name", "generateName"}:
        message = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        yield field_forbidden(f"{field}.properties[metadata]", message)
    yield from _problems(schema, field)


def _problems(schema: JsonObject, field: str, *, defaults: bool = True) -> Causes:
    """What is wrong with a schema and those below it. Below additionalProperties, `defaults` are not looked at."""
    yield from _unsupported(schema, field)
    kind = schema.get("type")
    if kind and kind not in _TYPES:
        yield not_supported(f"{field}.type", kind, _TYPES)
    yield from _list_problems(schema, field)
    yield from _extension_problems(schema, field)
    if schema.get("additionalProperties") and schema.get("properties"):
        yield field_forbidden(
            f"{field}.additionalProperties", "additionalProperties and properties are mutual exclusive"
        )
    if "pattern" in schema:
        yield from _pattern_problem(schema["pattern"], f"{field}.pattern")
    for name, inner in (schema.get("properties") or {}).items():
        where = f"{field}.properties[{name}]"
        yield from _untyped(inner, where, "must not be empty for specified object fields")
        yield from _problems(inner, where, defaults=defaults)
    if isinstance(schema.get("additionalProperties"), dict):
        where = f"{field}.additionalProperties"
        yield from _untyped(schema["additionalProperties"], where, "must not be empty for specified object fields")
        yield from _problems(schema["additionalProperties"], where, defaults=False)
    if isinstance(schema.get("items"), dict):
        yield from _untyped(schema["items"], f"{field}.items", "must not be empty for specified array items")
        yield from _problems(schema["items"], f"{field}.items", defaults=defaults)
    yield from _junctors(schema, field)
    if defaults and schema.get("default") is not None:
        yield from _default_problems(schema, f"{field}.default")


def _untyped(schema: JsonObject, field: str, message: str) -> Causes:
    if not any(schema.get(word) for word in ("type", "x-kubernetes-int-or-string", _PRESERVE, "$ref")):
        yield required(f"{field}.type", message)


def _unsupported(schema: JsonObject, field: str) -> Causes:
    for word in ("$ref", "dependencies", "definitions"):
        if schema.get(word) is not None:
            yield field_forbidden(f"{field}.{word}", f"{word} is not supported")
    if schema.get("uniqueItems"):
        yield field_forbidden(
            f"{field}.uniqueItems",
            "uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        )


def _list_problems(schema: JsonObject, field: str) -> Causes:
    items = schema.get("items")
    if schema.get("type") == "array" and items is None:
        yield required(f"{field}.items", "must be specified")
    if isinstance(items, list):
        yield field_forbidden(f"{field}.items", "items must be a schema object and not an array")
    kind = schema.get(_LIST_TYPE)
    if kind is None:
        return
    if schema.get("type") != "array":
        yield invalid_value(f"{field}.type", schema.get("type", ""), f"must be array if {_LIST_TYPE} is specified")
    if kind not in _LIST_TYPES:
        yield not_supported(f"{field}.{_LIST_TYPE}", kind, _LIST_TYPES)
    if kind == "map" and isinstance(items, dict):
        yield from _key_problems(schema.get(_KEYS) or [], items, field)
    if kind == "set" and isinstance(items, dict):
        if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
            message = "must be atomic as item of a list with x-kubernetes-list-type=set"
            yield invalid_value(f"{field}.items.x-kubernetes-map-type", items.get("x-kubernetes-map-type"), message)
        if items.get("type") == "array" and items.get(_LIST_TYPE, "atomic") != "atomic":
            message = "must be atomic as item of a list with x-kubernetes-list-type=set"
            yield invalid_value(f"{field}.items.{_LIST_TYPE}", items.get(_LIST_TYPE), message)


def _key_problems(keys: list[str], items: JsonObject, field: str) -> Causes:
    if not keys:
        yield required(f"{field}.{_KEYS}", f"must not be empty if {_LIST_TYPE} is map")
    properties = items.get("properties") or {}
    if any(key not in properties for key in keys):
        yield invalid_value(f"{field}.{_KEYS}", keys, "entries must all be names of item properties")
        return
    for key in keys:
        if properties[key].get("default") is None and key not in items.get("required", ()):
            message = f"this property is in {_KEYS}, so it must have a default or be a required property"
            yield required(f"{field}.items.properties[{key}].default", message)


def _extension_problems(schema: JsonObject, field: str) -> Causes:
    if schema.get(_PRESERVE) is False:
        yield invalid_value(f"{field}.{_PRESERVE}", False, "must be true or undefined")
    if schema.get(_EMBEDDED) and not schema.get("properties") and not schema.get(_PRESERVE):
        yield required(f"{field}.properties", f"must not be empty if {_EMBEDDED} is true without {_PRESERVE}")


def _pattern_problem(pattern: str, field: str) -> Causes:
    try:
        compile_pattern(pattern)
    except PatternError as problem:
        message = f"must be a valid regular expression, but isn't: error parsing regexp: {problem}"
        yield invalid_value(field, pattern, message)


def _junctors(schema: JsonObject, field: str) -> Causes:
    choice = schema.get("x-kubernetes-int-or-string")
    for word in ("allOf", "anyOf", "oneOf"):
        for index, inner in enumerate(schema.get(word) or ()):
            yield from _junctor(inner, f"{field}.{word}[{index}]", types_allowed=bool(choice))
    if schema.get("not"):
        yield from _junctor(schema["not"], f"{field}.not", types_allowed=False)


def _junctor(schema: JsonObject, field: str, *, types_allowed: bool) -> Causes:
    for word in _NOT_IN_JUNCTORS:
        if schema.get(word) and not (types_allowed and word == "type"):
            yield field_forbidden(f"{field}.{word}", "must be empty to be structural")
    for name, inner in (schema.get("properties") or {}).items():
        yield from _junctor(inner, f"{field}.properties[{name}]", types_allowed=False)
    if isinstance(schema.get("items"), dict):
        yield from _junctor(schema["items"], f"{field}.items", types_allowed=False)
    yield from _junctors(schema, field)


def _default_problems(schema: JsonObject, field: str) -> Causes:
    default = deepcopy(schema["default"])
    if prune(default, schema, ""):
        yield invalid_value(field, schema["default"], "must not have unknown fields")
        return
    for cause in problems_of(default, schema, ""):
        yield cause._replace(field=f"{field}.{cause.field}" if cause.field else field)
