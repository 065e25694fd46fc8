"""Reads JSON bodies within bounds, and words what is wrong with them as the API server's decoder does."""

from __future__ import annotations

import json
from typing import Any, Final

from podium.kube.documents import DocumentError, read_json

_AFTER: Final = {
    "Expecting value": "looking for beginning of value",
    "Expecting property name enclosed in double quotes": "looking for beginning of object key string",
    "Expecting ':' delimiter": "after object key",
    "Extra data": "after top-level value",
    "Illegal trailing comma before end of object": "looking for beginning of object key string",
    "Illegal trailing comma before end of array": "looking for beginning of value",
}


class BodyError(ValueError):
    """A body that is not JSON, or is out of bounds, in the words of the API server's decoder."""


def read_body(body: bytes) -> Any:
    """The JSON value in a body; BodyError where there is none."""
    try:
        return read_json(body)
    except DocumentError as error:
        raise BodyError(_complaint(body, error)) from None


def _complaint(body: bytes, error: DocumentError) -> str:
    if not error.language:
        return "exceeded max depth" if "levels deep" in error.problem else error.problem
    text = body.decode("latin-1")
    try:
        _DECODER.decode(text)
    except json.JSONDecodeError as problem:
        return _located(text, problem)
    except ValueError as problem:
        return str(problem)
    return error.problem


def _refuse_constant(name: str) -> None:
    raise ValueError(f"invalid character '{name[0]}' looking for beginning of value")


# Numbers stay text, because only the syntax is of interest: int() refuses many digits.
_DECODER: Final = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=_refuse_constant)


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
