"""Words JSON syntax errors as the API server's decoder does."""

from __future__ import annotations

import json
from typing import Final

_AFTER: Final = {
    "Expecting value": "looking for beginning of value",
    "Expecting property name enclosed in double quotes": "looking for beginning of object key string",
    "Expecting ':' delimiter": "after object key",
    "Extra data": "after top-level value",
    "Illegal trailing comma before end of object": "looking for beginning of object key string",
    "Illegal trailing comma before end of array": "looking for beginning of value",
}


def json_complaint(body: bytes, error: Exception | None = None) -> str:
    """What is wrong with a text that is not JSON, in the words of the API server's decoder."""
    text = body.decode("latin-1")
    try:
        json.loads(text)
    except json.JSONDecodeError as problem:
        return _located(text, problem)
    return str(error)


def _located(text: str, problem: json.JSONDecodeError) -> str:
    at = problem.pos
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    if at >= len(text) or problem.msg.startswith("Unterminated string"):
        return "unexpected end of JSON input"
    for literal in ("null", "true", "false"):
        if text[at] == literal[0]:
            good = next((n for n in range(len(literal)) if text[at + n : at + n + 1] != literal[n]), 0)
            found = text[at + good : at + good + 1] or " "
            return f"invalid character {_quoted(found)} in literal {literal} (expecting {_quoted(literal[good])})"
    where = _AFTER.get(problem.msg)
    if where is None:
        inside = text.rfind("{", 0, at) > text.rfind("[", 0, at)
        where = "after object key:value pair" if inside else "after array element"
    return f"invalid character {_quoted(text[at])} {where}"


def _quoted(character: str) -> str:
    if character in ("'", '"'):
        return {"'": r"'\''", '"': "'\"'"}[character]
    return f"'{character}'" if " " <= character <= "~" else f"'\\u{ord(character):04x}'"
