"""Sets of field paths, and how `metadata.managedFields` writes them down (FieldsV1).

A path is a tuple of steps, each written as on the wire: `f:name` for a field, `k:{"name":"a"}` for an entry of a
list identified by keys, `v:"x"` for a member of a set, `i:0` for an index. A set of paths is a plain Python set, so
union, intersection and difference are the language's own. On the wire it is a tree; a node that is itself in the
set and has children carries an entry `.`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from kubecel.strconv import parse_int64

Path = tuple[str, ...]
Paths = frozenset[Path]


def field_step(name: str) -> str:
    return f"f:{name}"


def key_step(keys: Mapping[str, Any]) -> str:
    return "k:" + _json({name: keys[name] for name in sorted(keys)})


def value_step(value: Any) -> str:
    return "v:" + _json(value)


def to_wire(paths: Iterable[Path]) -> dict[str, Any]:
    """The tree of FieldsV1."""
    tree: dict[str, Any] = {}
    ordered = sorted(paths, key=path_order)
    for path in ordered:
        node = tree
        for step in path:
            node = node.setdefault(step, {})
    for path in ordered:
        node = tree
        for step in path:
            node = node[step]
        if node:
            node["."] = {}
    return tree


def from_wire(tree: Mapping[str, Any]) -> Paths:
    """The paths of a FieldsV1 tree; raises ValueError for what is not one."""
    found: set[Path] = set()
    _collect(tree, (), found)
    return frozenset(found)


def _collect(tree: Mapping[str, Any], prefix: Path, found: set[Path]) -> None:
    for key, inner in tree.items():
        if key == ".":
            found.add(prefix)
            continue
        path = (*prefix, _canonical(key))
        if not isinstance(inner, dict):
            raise ValueError(f"{key} holds no map")
        if not inner:
            found.add(path)
        _collect(inner, path, found)


def _canonical(step: str) -> str:
    kind, rest = step[:2], step[2:]
    if kind == "k:":
        return key_step(msgspec.json.decode(rest, type=dict[str, Any]))
    if kind == "v:":
        return value_step(msgspec.json.decode(rest))
    if kind not in ("f:", "i:"):
        raise ValueError(f"{step} is no step of a path")
    return step


def path_order(path: Path) -> tuple[Any, ...]:
    return tuple(map(_step_order, path))


def reading_order(paths: Iterable[Path]) -> list[Path]:
    """As the API server lists paths: those that end at a node before those that go on below it."""
    return sorted(
        paths, key=lambda path: tuple((at < len(path) - 1, _step_order(step)) for at, step in enumerate(path))
    )


def _step_order(step: str) -> tuple[Any, ...]:
    kind, rest = step[:2], step[2:]
    if kind == "f:":
        return (0, rest)
    if kind == "k:":
        keys = msgspec.json.decode(rest, type=dict[str, Any])
        return (1, tuple((name, _value_order(value)) for name, value in keys.items()))
    if kind == "v:":
        return (2, _value_order(msgspec.json.decode(rest)))
    return (3, parse_int64(rest) or 0)


def _value_order(value: Any) -> tuple[int, Any]:
    if isinstance(value, bool):
        return (2, value)
    if isinstance(value, int | float):
        return (0, value)
    return (1, str(value))


def display(path: Path) -> str:
    """A path as messages show it: .spec.containers[name="a"].image"""
    return "".join(map(display_step, path))


def display_step(step: str) -> str:
    kind, rest = step[:2], step[2:]
    if kind == "f:":
        return "." + rest
    if kind == "k:":
        keys = msgspec.json.decode(rest, type=dict[str, Any])
        return "[" + ",".join(f"{name}={_json(value)}" for name, value in keys.items()) + "]"
    return f"[={rest}]" if kind == "v:" else f"[{rest}]"


def _json(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
