"""Finds entries of custom objects that repeat where they may not: in sets, and under the keys of lists with keys.

As in kube-apiserver, an entry is reported once, where it comes for the second time, and 1 and 1.0 differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import Cause, duplicate, invalid_value


def repeated_entries(value: Any, schema: JsonObject, path: str = "") -> Iterator[Cause]:
    """What is wrong with the entries of all lists in a value."""
    if isinstance(value, list):
        yield from _in_list(value, schema, path)
        items = schema.get("items")
        if isinstance(items, dict):
            for index, entry in enumerate(value):
                yield from repeated_entries(entry, items, f"{path}[{index}]")
    elif isinstance(value, dict):
        rest, known = schema.get("additionalProperties"), schema.get("properties") or {}
        for name, inner in value.items():
            if isinstance(rest, dict):
                yield from repeated_entries(inner, rest, f"{path}[{name}]")
            elif name in known:
                yield from repeated_entries(inner, known[name], f"{path}.{name}" if path else name)


def _in_list(value: list[Any], schema: JsonObject, path: str) -> Iterator[Cause]:
    kind = schema.get("x-kubernetes-list-type")
    if kind not in ("set", "map"):
        return
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    times: Counter[object] = Counter()
    repeated = []
    for index, entry in enumerate(value):
        if kind == "map" and entry is not None and not isinstance(entry, dict):
            yield invalid_value(f"{path}[{index}]", entry, "must be an object for an array of list-type map")
            return
        identified = {key: entry[key] for key in sorted(keys) if key in (entry or ())} if kind == "map" else entry
        identity = _identity(identified)
        times[identity] += 1
        if times[identity] == 2:
            repeated.append((index, identified))
    for index, entry in repeated:
        yield duplicate(f"{path}[{index}]", entry)


def _identity(value: Any) -> object:
    """What is equal for equal values, types included."""
    if isinstance(value, dict):
        return tuple((name, _identity(value[name])) for name in sorted(value))
    return tuple(map(_identity, value)) if isinstance(value, list) else (type(value), value)
