"""Converts `metadata.managedFields` (who owns which fields) between its wire form and sets of paths.

A manager is known by its name, its operation (Apply or Update), the subresource it writes through and, for updates,
the API version. Two writes of the same manager share an entry; an entry without fields disappears.

A path is a tuple of steps, each written as on the wire: `f:name` for a field, `k:{"name":"a"}` for an entry of a
list identified by keys, `v:"x"` for a member of a set, `i:0` for an index. A set of paths is a plain Python set, so
union, intersection and difference are the language's own. On the wire it is a tree; a node that is itself in the
set and has children carries an entry `.`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

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


MOST_UPDATERS = 10
ANCIENT = "ancient-changes"


class Manager(NamedTuple):
    name: str
    operation: str
    api_version: str
    subresource: str

    @property
    def identity(self) -> Manager:
        """Appliers keep their entry across versions."""
        return self._replace(api_version="") if self.operation == "Apply" else self

    @property
    def order(self) -> str:
        """Conflicts are listed in the order of this text, which is how the API server names a manager to itself."""
        named = {
            "manager": self.name,
            "operation": self.operation,
            "apiVersion": self.api_version,
            "subresource": self.subresource,
        }
        return msgspec.json.encode({key: value for key, value in named.items() if value}).decode()


class ManagedFieldsEntry(NamedTuple):
    fields: Paths
    api_version: str
    time: str | None


Managed = dict[Manager, ManagedFieldsEntry]


def applier(name: str, subresource: str) -> Manager:
    return Manager(name, "Apply", "", subresource)


def updater(name: str, api_version: str, subresource: str) -> Manager:
    return Manager(name or "unknown", "Update", api_version, subresource)


def decode(entries: Iterable[dict[str, Any]] | None) -> Managed:
    """Raises ValueError for an entry that is none."""
    managed: Managed = {}
    for entry in entries or ():
        version = entry.get("apiVersion", "")
        operation = entry.get("operation", "")
        if operation not in ("Apply", "Update"):
            raise ValueError("operation must be `Apply` or `Update`")
        if not version:
            raise ValueError("apiVersion must not be empty")
        if entry.get("fieldsType") != "FieldsV1":
            raise ValueError("fieldsType must be FieldsV1")
        manager = Manager(entry.get("manager", ""), operation, version, entry.get("subresource", ""))
        managed[manager.identity] = ManagedFieldsEntry(
            from_wire(entry.get("fieldsV1") or {}), version, entry.get("time")
        )
    return managed


def encode(managed: Managed) -> list[dict[str, Any]]:
    ordered = sorted(managed.items(), key=lambda item: (item[0].operation, item[1].time or "", *_names(*item)))
    return [_wire(manager, entry) for manager, entry in ordered]


def _names(manager: Manager, entry: ManagedFieldsEntry) -> tuple[str, str, str]:
    return manager.name, entry.api_version, manager.subresource


def _wire(manager: Manager, entry: ManagedFieldsEntry) -> dict[str, Any]:
    return {
        **({"manager": manager.name} if manager.name else {}),
        "operation": manager.operation,
        "apiVersion": entry.api_version,
        **({"time": entry.time} if entry.time else {}),
        "fieldsType": "FieldsV1",
        "fieldsV1": to_wire(entry.fields),
        **({"subresource": manager.subresource} if manager.subresource else {}),
    }


def capped(managed: Managed) -> Managed:
    """At most ten updaters are remembered one by one: the oldest become one entry per API version."""
    updaters = [manager for manager in managed if manager.operation == "Update"]
    if len(updaters) <= MOST_UPDATERS:
        return managed
    merged = dict(managed)
    updaters.sort(key=lambda manager: (managed[manager].time or "", manager.order))
    first: dict[str, Manager] = {}
    left = len(updaters)
    for manager in updaters:
        if left <= MOST_UPDATERS:
            break
        entry = merged[manager]
        if entry.api_version not in first:
            first[entry.api_version] = manager
            continue
        bucket = Manager(ANCIENT, "Update", entry.api_version, "")
        if bucket not in merged:
            merged[bucket] = merged.pop(first[entry.api_version])
        merged[bucket] = ManagedFieldsEntry(merged[bucket].fields | entry.fields, entry.api_version, entry.time)
        del merged[manager]
        left -= 1
    return merged


def timestamp(now: datetime) -> str:
    return now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
