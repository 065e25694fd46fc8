"""Reads the fieldPath of a rule, `.spec.parts['a.b']`, against the schema at which the rule stands."""

from __future__ import annotations

import re
from typing import Final

from podium.kube.json_object import JsonObject

_ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"}


class FieldPathError(ValueError):
    """A path that leads to no field."""


def field_path(text: str, schema: JsonObject) -> str:
    """The path as messages show it; FieldPathError where it leads nowhere.

    >>> field_path(".spec['size']", {"properties": {"spec": {"properties": {"size": {}}}}})
    'spec.size'
    """
    tokens = _tokens(text)
    shown = ""
    while tokens:
        opening = tokens.pop(0)
        if opening not in (".", "["):
            raise FieldPathError(f"expected [ or . but got: {opening}")
        if not tokens:
            raise FieldPathError("unexpected end of JSON path")
        name = tokens.pop(0)
        if opening == "[":
            name = _quoted(name)
        properties, rest = schema.get("properties"), schema.get("additionalProperties")
        if properties:
            if name not in properties:
                raise FieldPathError("does not refer to a valid field")
            schema = properties[name]
            shown += f".{name}" if shown else name
        elif isinstance(rest, dict):
            schema = rest
            shown += f"[{name}]"
        else:
            raise FieldPathError("does not refer to a valid field")
        if opening == "[":
            if not tokens:
                raise FieldPathError("unexpected end of JSON path")
            closing = tokens.pop(0)
            if closing != "]":
                raise FieldPathError(f"expected ] but got {closing}")
    return shown


def _tokens(text: str) -> list[str]:
    """The delimiters and what is between them; in quotes, delimiters are none."""
    found, at = [], 0
    while at < len(text):
        if text[at] == "'":
            end = at + 1
            while end < len(text) and not (text[end] == "'" and text[end - 1] != "\\"):
                end += 1
            end += 1
        elif text[at] in ".[]":
            end = at + 1
        else:
            end = next((n for n in range(at, len(text)) if text[n] in ".[]"), len(text))
        found.append(text[at:end])
        at = end
    return found


def _quoted(token: str) -> str:
    if len(token) < 2 or token[0] != "'" or token[-1] != "'":
        raise FieldPathError(f"expected single quoted string but got {token}")

    def replaced(found: re.Match[str]) -> str:
        if found[1] not in _ESCAPES:
            raise FieldPathError(f"invalid string literal: invalid escape char {found[0]}")
        return _ESCAPES[found[1]]

    return re.sub(r"\\(.)", replaced, token[1:-1])
