"""Validates CustomResourceDefinitions: what their kinds are called, and schemas that this server can keep to.

A schema must be structural: each field's type is said once, outside of anyOf and its like, so that pruning and
defaulting know what they look at. kube-apiserver checks more than is needed here to serve a kind
(docs/reference/embedded-api.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Final

from kubecel.names import dns_subdomain_errors
from kubecel.re2 import PatternError, compile_pattern
from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import Cause, field_forbidden, immutable, invalid_value, not_supported, required
from podium_cluster.apiserver.schema.custom_fields import prune
from podium_cluster.apiserver.schema.custom_values import problems_of
from podium_cluster.apiserver.schema.validation_rules import rule_problems

Causes = Iterator[Cause]

_LABEL: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_LABEL_RULE: Final = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)
_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_LIST_TYPES: Final = ("atomic", "set", "map")
_LIST_TYPE: Final = "x-kubernetes-list-type"
_KEYS: Final = "x-kubernetes-list-map-keys"
_TYPED: Final = ("type", "x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields", "$ref")


def definition_causes(definition: JsonObject, known: Sequence[JsonObject] = ()) -> list[Cause]:
    """What is wrong with a definition, old or new; the rules of `known` schemas were checked before."""
    spec = definition.get("spec", {})
    return [
        *_name_problems(definition.get("metadata", {}), spec),
        *_version_problems(spec.get("versions") or [], known),
    ]


def definition_update_causes(new: JsonObject, old: JsonObject) -> list[Cause]:
    """What is wrong with the next state of a definition: also what may never change."""
    causes = definition_causes(new, [_schema_of(version) or {} for version in old["spec"].get("versions") or ()])
    for path in (("group",), ("scope",), ("names", "plural"), ("names", "kind")):
        before, after = old["spec"], new["spec"]
        for step in path:
            before, after = before.get(step, ""), after.get(step, "")
        if before != after:
            causes = [cause for cause in causes if cause.field != "metadata.name"]
            causes.append(immutable(".".join(("spec", *path)), after))
    return causes


def _name_problems(metadata: JsonObject, spec: JsonObject) -> Causes:
    names, group = spec.get("names", {}), spec.get("group", "")
    wanted = f"{names.get('plural', '')}.{group}"
    if metadata.get("name") and metadata["name"] != wanted:
        yield invalid_value("metadata.name", metadata["name"], 'must be spec.names.plural+"."+spec.group')
    if not group:
        yield required("spec.group")
    elif errors := dns_subdomain_errors(group):
        yield invalid_value("spec.group", group, errors[0])
    if spec.get("scope") not in ("Cluster", "Namespaced"):
        yield not_supported("spec.scope", spec.get("scope", ""), ("Cluster", "Namespaced"))
    for name in ("plural", "singular", "kind", "listKind"):
        value = names.get(name, "")
        if not value:
            yield required(f"spec.names.{name}")
        elif not _LABEL.fullmatch(value.lower() if "ind" in name else value):
            yield invalid_value(f"spec.names.{name}", value, _LABEL_RULE)
    if (spec.get("conversion") or {}).get("strategy", "None") != "None":
        yield not_supported("spec.conversion.strategy", spec["conversion"]["strategy"], ("None",))


def _version_problems(versions: list[JsonObject], known: Sequence[JsonObject]) -> Causes:
    names = [version.get("name", "") for version in versions]
    if len(set(names)) != len(names):
        yield invalid_value("spec.versions", names, "must contain unique version names")
    if sum(bool(version.get("storage")) for version in versions) != 1:
        yield invalid_value("spec.versions", names, "must have exactly one version marked as storage version")
    for at, version in enumerate(versions):
        path = f"spec.versions[{at}]"
        if not _LABEL.fullmatch(names[at]):
            yield invalid_value(f"{path}.name", names[at], _LABEL_RULE)
        schema = _schema_of(version)
        where = f"{path}.schema.openAPIV3Schema"
        if schema is None:
            yield required(where)
        elif schema not in known:
            wrong = list(_schema_problems(schema, where))
            yield from wrong or rule_problems(schema, where)
        scale = (version.get("subresources") or {}).get("scale") or {}
        for name, under in (("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")):
            if scale and not scale.get(name, "").startswith(under):
                field = f"{path}.subresources.scale.{name}"
                yield invalid_value(field, scale.get(name, ""), f"should be a json path under {under[:-1]}")


def _schema_of(version: JsonObject) -> JsonObject | None:
    found: JsonObject | None = (version.get("schema") or {}).get("openAPIV3Schema")
    return found


def _schema_problems(schema: JsonObject, field: str) -> Causes:
    """What keeps a schema from being a custom kind's; `field` is where it stands."""
    if schema.get("type") != "object":
        yield invalid_value(f"{field}.type", schema.get("type", ""), "must be object at the root")
    else:
        yield from _problems(schema, field)


def _problems(schema: JsonObject, field: str, *, defaults: bool = True) -> Causes:
    """What is wrong with a schema and those below it. Below additionalProperties, `defaults` are not looked at."""
    kind, items = schema.get("type"), schema.get("items")
    for word in ("$ref", "dependencies", "definitions", "uniqueItems"):
        if schema.get(word):
            yield field_forbidden(f"{field}.{word}", f"{word} is not supported")
    if kind and kind not in _TYPES:
        yield not_supported(f"{field}.type", kind, _TYPES)
    if kind == "array" and not isinstance(items, dict):
        yield required(f"{field}.items", "must be one schema")
    if schema.get("additionalProperties") and schema.get("properties"):
        yield field_forbidden(f"{field}.additionalProperties", "may not be set beside properties")
    yield from _list_problems(schema, items if isinstance(items, dict) else {}, field)
    yield from _pattern_problems(schema, field)
    for name, inner in (schema.get("properties") or {}).items():
        yield from _part_problems(inner, f"{field}.properties[{name}]", defaults=defaults)
    if isinstance(schema.get("additionalProperties"), dict):
        yield from _part_problems(schema["additionalProperties"], f"{field}.additionalProperties", defaults=False)
    if isinstance(items, dict):
        yield from _part_problems(items, f"{field}.items", defaults=defaults)
    if defaults and schema.get("default") is not None:
        default = deepcopy(schema["default"])
        if prune(default, schema, ""):
            yield invalid_value(f"{field}.default", schema["default"], "must not have unknown fields")
        for cause in problems_of(default, schema, ""):
            yield cause._replace(field=f"{field}.default" + (f".{cause.field}" if cause.field else ""))


def _part_problems(schema: JsonObject, field: str, *, defaults: bool) -> Causes:
    if not any(schema.get(word) for word in _TYPED):
        yield required(f"{field}.type", "must not be empty for specified fields and items")
    yield from _problems(schema, field, defaults=defaults)


def _list_problems(schema: JsonObject, items: JsonObject, field: str) -> Causes:
    kind, properties = schema.get(_LIST_TYPE, "atomic"), items.get("properties") or {}
    if kind not in _LIST_TYPES:
        yield not_supported(f"{field}.{_LIST_TYPE}", kind, _LIST_TYPES)
    elif kind == "set" and items.get("type") in ("object", "array"):
        yield invalid_value(f"{field}.items.type", items["type"], f"{_LIST_TYPE}=set is for scalars")
    elif kind == "map":
        keys = schema.get(_KEYS) or []
        if not keys or any(key not in properties for key in keys):
            yield invalid_value(f"{field}.{_KEYS}", keys, "entries must all be names of item properties")
        for key in keys:
            if key not in items.get("required", ()) and properties.get(key, {}).get("default") is None:
                detail = f"this property is in {_KEYS}, so it must have a default or be a required property"
                yield required(f"{field}.items.properties[{key}].default", detail)


def _pattern_problems(schema: JsonObject, field: str) -> Causes:
    """Of the schema and of its alternatives, which have no types to check."""
    try:
        compile_pattern(schema.get("pattern", ""))
    except PatternError as problem:
        detail = f"must be a valid regular expression, but isn't: error parsing regexp: {problem}"
        yield invalid_value(f"{field}.pattern", schema["pattern"], detail)
    for word in ("allOf", "anyOf", "oneOf"):
        for at, inner in enumerate(schema.get(word) or ()):
            yield from _alternative_problems(inner, f"{field}.{word}[{at}]")
    if schema.get("not"):
        yield from _alternative_problems(schema["not"], f"{field}.not")


def _alternative_problems(schema: JsonObject, field: str) -> Causes:
    yield from _pattern_problems(schema, field)
    for name, inner in (schema.get("properties") or {}).items():
        yield from _alternative_problems(inner, f"{field}.properties[{name}]")
    for word in ("items", "additionalProperties"):
        if isinstance(schema.get(word), dict):
            yield from _alternative_problems(schema[word], f"{field}.{word}")
