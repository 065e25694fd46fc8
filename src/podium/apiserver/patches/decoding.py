"""The body of a patch, decoded, with the complaint that each kind of patch has about what is not one."""

from __future__ import annotations

import json
from typing import Any, Final

import yaml

from podium.apiserver.errors import bad_request
from podium.apiserver.patches.go_text import go_type

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MAP: Final = "map[string]interface {}"
_AFTER: Final = {
    "Expecting value": "looking for beginning of value",
    "Expecting property name enclosed in double quotes": "looking for beginning of object key string",
    "Expecting ':' delimiter": "after object key",
    "Extra data": "after top-level value",
    "Illegal trailing comma before end of object": "looking for beginning of object key string",
    "Illegal trailing comma before end of array": "looking for beginning of value",
}


def json_operations(body: Any) -> list[dict[str, Any]]:
    """The operations of a JSON patch."""
    found = _json(body, "error decoding patch: ")
    if found is None:
        return []
    if not isinstance(found, list):
        raise bad_request(f"error decoding patch: {_mismatch(found, '[]handlers.jsonPatchOp')}")
    for operation in found:
        if not isinstance(operation, dict):
            raise bad_request(f"error decoding patch: {_mismatch(operation, 'handlers.jsonPatchOp')}")
    return found


def merge_document(body: Any) -> dict[str, Any]:
    """A JSON merge patch."""
    found = _json(body, "error decoding patch: ")
    if found is None:
        raise bad_request("Invalid JSON Patch")
    if not isinstance(found, dict):
        raise bad_request(f"error decoding patch: {_mismatch(found, _MAP)}")
    return found


def strategic_document(body: Any) -> dict[str, Any]:
    """A strategic merge patch."""
    found = _json(body, "")
    if found is not None and not isinstance(found, dict):
        raise bad_request(_mismatch(found, _MAP))
    return found or {}


def applied_configuration(body: Any) -> dict[str, Any]:
    """What is applied: YAML, of which JSON is a part."""
    found = body
    if isinstance(body, bytes):
        try:
            found = yaml.load(body, Loader=_LOADER)  # a safe loader
        except yaml.YAMLError as error:
            raise bad_request(f"error decoding YAML: error converting YAML to JSON: {_yaml_problem(error)}") from error
    if found is not None and not isinstance(found, dict):
        told = f"error unmarshaling JSON: while decoding JSON: {_mismatch(found, _MAP)}"
        raise bad_request(f"error decoding YAML: {told}")
    return found or {}


def _json(body: Any, prefix: str) -> Any:
    if not isinstance(body, bytes):
        return body
    try:
        return json.loads(body)
    except ValueError as error:
        raise bad_request(prefix + json_complaint(body, error)) from error


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


def _mismatch(value: Any, expected: str) -> str:
    word = {"map[string]interface {}": "object", "[]interface {}": "array", "string": "string", "bool": "bool"}
    return f"json: cannot unmarshal {word.get(go_type(value), 'number')} into Go value of type {expected}"


def _yaml_problem(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or "could not be read"
    return f"yaml: line {mark.line + 1}: {problem}" if mark is not None else f"yaml: {problem}"
