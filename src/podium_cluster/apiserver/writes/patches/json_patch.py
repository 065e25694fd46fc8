"""Applies JSON patches (RFC 6902) and JSON merge patches (RFC 7386) with the habits of the API server's library, where
they differ from the RFC.

`replace` of a key that is not there sets it; a negative index counts from the end; the first part of a path is
never looked at, so `a/b` means `/b`. Whatever cannot be applied answers 422 with one general sentence: the server
does not tell which operation failed. Copies may add 3 MiB in all, and a patch holds 10,000 operations at most.

In a JSON merge patch a map is merged key by key, null removes, anything else replaces.

As in the API server's library, nulls inside a list of the patch's own maps are dropped with their keys where the
target has no such value yet, while a list that replaces another value is taken as it stands.
"""

from __future__ import annotations

import copy
import re
from typing import Any

import msgspec

from kubecel.strconv import parse_int64
from podium.kube.json_object import without_null_fields
from podium_cluster.apiserver.errors import StatusError

MOST_OPERATIONS = 10_000
MOST_COPIED_BYTES = 3 * 1024 * 1024
REJECTED = "the server rejected our request due to an error in our request"


class _DoesNotApplyError(Exception):
    """An operation that cannot be carried out; the reason stays inside, as in the real server."""


def json_patch(obj: dict[str, Any], operations: list[dict[str, Any]]) -> Any:
    """The object after all operations; the given one is left alone. Replacing the whole document may give a list."""
    if len(operations) > MOST_OPERATIONS:
        message = f"The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}, got {len(operations)}"
        raise StatusError(413, "RequestEntityTooLarge", f"Request entity too large: {message}")
    document = _Document(copy.deepcopy(obj))
    try:
        for operation in operations:
            document.apply(operation)
    except _DoesNotApplyError as error:
        raise rejected() from error
    return document.root


def rejected() -> StatusError:
    return StatusError(422, "Invalid", REJECTED, {})


class _Document:
    def __init__(self, root: Any) -> None:
        self.root = root
        self.copied = 0

    def apply(self, operation: dict[str, Any]) -> None:
        match operation.get("op"):
            case "add":
                _add(self._location(_text(operation, "path")), _value(operation))
            case "remove":
                _remove(self._location(_text(operation, "path")))
            case "replace":
                self._replace(_text(operation, "path"), operation)
            case "move":
                source = self._location(_text(operation, "from"))
                value = _read(source)
                _remove(source)
                _add(self._location(_text(operation, "path")), value)
            case "copy":
                value = _read(self._location(_text(operation, "from")))
                target = self._location(_text(operation, "path"))
                self.copied += len(msgspec.json.encode(value))
                if self.copied > MOST_COPIED_BYTES:
                    raise _DoesNotApplyError("copies too much")
                _add(target, copy.deepcopy(value))
            case "test":
                self._test(_text(operation, "path"), operation)
            case _:
                raise _DoesNotApplyError("unexpected kind")

    def _replace(self, path: str, operation: dict[str, Any]) -> None:
        if not path:
            if not isinstance(operation.get("value"), dict | list):
                raise _DoesNotApplyError("the whole document must be an object or a list")
            self.root = _value(operation)
            return
        container, key = self._location(path)
        if isinstance(container, dict):
            container[key] = _value(operation)
        else:
            container[_existing(container, key)] = _value(operation)

    def _test(self, path: str, operation: dict[str, Any]) -> None:
        found = _read(self._location(path)) if path else self.root
        if not same(found, operation.get("value")):
            raise _DoesNotApplyError("test failed")

    def _location(self, path: str) -> tuple[Any, str]:
        """The container a path ends in, and the key or index in it."""
        parts = path.split("/")
        if len(parts) < 2:
            raise _DoesNotApplyError("not a path")
        container = self.root
        for part in parts[1:-1]:
            container = _read((container, _unescaped(part)))
            if not isinstance(container, dict | list):
                raise _DoesNotApplyError("missing path")
        return container, _unescaped(parts[-1])


def same(left: Any, right: Any) -> bool:
    """Equal as JSON: true is not 1, and 1 is not 1.0."""
    if isinstance(left, dict):
        return (
            isinstance(right, dict) and left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
        )
    if isinstance(left, list):
        return isinstance(right, list) and len(left) == len(right) and all(map(same, left, right))
    return type(left) is type(right) and bool(left == right)


def _text(operation: dict[str, Any], field: str) -> str:
    value = operation.get(field)
    if not isinstance(value, str):
        raise _DoesNotApplyError(f"missing {field}")
    return value


def _value(operation: dict[str, Any]) -> Any:
    return copy.deepcopy(operation.get("value"))


def _unescaped(part: str) -> str:
    return re.sub("~[01]", lambda found: "/" if found[0] == "~1" else "~", part)


def _read(location: tuple[Any, str]) -> Any:
    container, key = location
    return container.get(key) if isinstance(container, dict) else container[_existing(container, key)]


def _add(location: tuple[Any, str], value: Any) -> None:
    container, key = location
    if isinstance(container, dict):
        container[key] = value
    elif key == "-":
        container.append(value)
    else:
        container.insert(_index(key, len(container) + 1), value)


def _remove(location: tuple[Any, str]) -> None:
    container, key = location
    if isinstance(container, list):
        del container[_existing(container, key)]
    elif key in container:
        del container[key]
    else:
        raise _DoesNotApplyError("nothing to remove")


def _existing(container: list[Any], key: str) -> int:
    return _index(key, len(container))


def _index(key: str, length: int) -> int:
    index = parse_int64(key)
    if index is None:
        raise _DoesNotApplyError("not an index")
    if not -length <= index < length:
        raise _DoesNotApplyError("no such index")
    return index + length if index < 0 else index


def merge_patch(obj: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """The object with the patch merged in; neither argument is changed."""
    return _merged(copy.deepcopy(obj), copy.deepcopy(patch))


def _merged(target: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
            continue
        current = target.get(key)
        if isinstance(current, dict) and isinstance(value, dict):
            _merged(current, value)
        elif isinstance(current, dict):
            target[key] = value
        else:
            target[key] = without_null_fields(value)
    return target
