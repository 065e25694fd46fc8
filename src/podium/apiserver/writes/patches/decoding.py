"""Decodes the body of a patch, with the complaint that each kind of patch has about what is not one."""

from __future__ import annotations

import json
from typing import Any, Final

import yaml

from podium.apiserver.errors import bad_request
from podium.apiserver.go_json import json_complaint
from podium.apiserver.go_text import go_type

_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MAP: Final = "map[string]interface {}"


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
        message = f"error unmarshaling JSON: while decoding JSON: {_mismatch(found, _MAP)}"
        raise bad_request(f"error decoding YAML: {message}")
    return found or {}


def _json(body: Any, prefix: str) -> Any:
    if not isinstance(body, bytes):
        return body
    try:
        return json.loads(body)
    except ValueError as error:
        raise bad_request(prefix + json_complaint(body, error)) from error


def _mismatch(value: Any, expected: str) -> str:
    word = {"map[string]interface {}": "object", "[]interface {}": "array", "string": "string", "bool": "bool"}
    return f"json: cannot unmarshal {word.get(go_type(value), 'number')} into Go value of type {expected}"


def _yaml_problem(error: yaml.YAMLError) -> str:
    position = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or "could not be read"
    return f"yaml: line {position.line + 1}: {problem}" if position is not None else f"yaml: {problem}"
