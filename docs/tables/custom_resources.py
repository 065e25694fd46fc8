"""Lists the fields of the custom resources, from the definitions that `podium crds` prints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from docs.tables.markdown import code, plain, table
from podium.controllers.catalog import definitions

_HEADER = ("apiVersion", "kind", "metadata")


def page() -> str:
    return "\n".join(_resource(each["spec"]) for each in definitions().values())


def _resource(spec: dict[str, Any]) -> str:
    parts = [f"## {spec['names']['kind']}\n"]
    for version in spec["versions"]:
        schema = version["schema"]["openAPIV3Schema"]
        parts.append(f"`{spec['group']}/{version['name']}`, {spec['scope'].lower()}. {plain(schema['description'])}\n")
        parts.append(table(["field", "type", "meaning"], _fields(schema, "", top=True)))
    return "\n".join(parts)


def _fields(schema: dict[str, Any], prefix: str, *, top: bool = False) -> Iterator[list[str]]:
    required = schema.get("required", ())
    for name, about in schema.get("properties", {}).items():
        if top and name in _HEADER:
            continue
        meaning = plain(about.get("description", ""))
        must = "must be given" if name in required else ""
        yield [code(prefix + name), _type(about), " ".join(filter(None, [meaning, f"({must})" if must else ""]))]
        inner, suffix = _inner(about)
        yield from _fields(inner, f"{prefix}{name}{suffix}.")


def _inner(about: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """What has fields of its own in there, and how the way to it is written."""
    if "items" in about:
        return about["items"], "[]"
    if isinstance(about.get("additionalProperties"), dict):
        return about["additionalProperties"], ".*"
    return about, ""


def _type(about: dict[str, Any]) -> str:
    if "enum" in about:
        return "one of " + ", ".join(map(code, about["enum"]))
    if "anyOf" in about:
        return " or ".join(each["type"] for each in about["anyOf"])
    if about.get("type") == "array":
        return f"list of {_type(about['items'])}"
    text = str(about.get("type", "any"))
    bounds = [f"{word} {about[key]}" for key, word in (("minimum", "from"), ("maximum", "to")) if key in about]
    return " ".join([text, *bounds])
