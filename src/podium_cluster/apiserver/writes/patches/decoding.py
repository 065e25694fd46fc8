"""Decodes the body of a patch, with the complaint that each kind of patch has about what is not one."""

from __future__ import annotations

from typing import Any, Final

from podium.kube.documents import DocumentError, read_yaml
from podium_cluster.apiserver.errors import bad_request
from podium_cluster.apiserver.go_json import BodyError, read_body
from podium_cluster.apiserver.go_text import go_type

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
            found = read_yaml(body)
        except DocumentError as error:
            where = f"line {error.line}: " if error.line else ""
            problem = f"error converting YAML to JSON: yaml: {where}{error.problem}"
            raise bad_request(f"error decoding YAML: {problem}") from None
    if found is not None and not isinstance(found, dict):
        message = f"error unmarshaling JSON: while decoding JSON: {_mismatch(found, _MAP)}"
        raise bad_request(f"error decoding YAML: {message}")
    return found or {}


def _json(body: Any, prefix: str) -> Any:
    if not isinstance(body, bytes):
        return body
    try:
        return read_body(body)
    except BodyError as error:
        raise bad_request(f"{prefix}{error}") from None


def _mismatch(value: Any, expected: str) -> str:
    word = {"map[string]interface {}": "object", "[]interface {}": "array", "string": "string", "bool": "bool"}
    return f"json: cannot unmarshal {word.get(go_type(value), 'number')} into Go value of type {expected}"
