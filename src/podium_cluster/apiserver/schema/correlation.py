"""Finds for each part of an updated object the part that it was before, and whether it has changed.

What has not changed may stay as it is, even where the schema of today would refuse it (ratcheting). Parts of objects
and maps correspond by name, entries of lists with keys by these; entries of other lists correspond to nothing, so that
a list counts as changed or unchanged as a whole.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from kubecel.schema_types import Schema
from kubecel.structured_values import same_json

_SCALARS: Final = (bool, int, float, str)


class Correlated:
    """A part of an object with what it was before."""

    def __init__(self, value: Any, old: Any, schema: Schema) -> None:
        self.value = value
        self.old = old
        self._schema = schema
        self._children: dict[str | int, Correlated] = {}
        # Not cached_property, which has one lock for all threads.
        self._entries: dict[object, Any] | Literal[False] | None = False
        self._unchanged: bool | None = None

    def key(self, name: str) -> Correlated | None:
        """The part under a name, where it was there before and the schema knows it."""
        found = self._children.get(name)
        if found is not None:
            return found
        if not isinstance(self.value, dict) or not isinstance(self.old, dict):
            return None
        if name not in self.value or name not in self.old:
            return None
        schema = (self._schema.get("properties") or {}).get(name)
        if schema is None:
            rest = self._schema.get("additionalProperties")
            if not isinstance(rest, dict):
                return None
            schema = rest
        child = self._children[name] = Correlated(self.value[name], self.old[name], schema)
        return child

    def index(self, at: int) -> Correlated | None:
        """The entry at an index, where one with its keys was there before."""
        found = self._children.get(at)
        if found is not None:
            return found
        old = self._old_entries
        items = self._schema.get("items")
        if old is None or not items or not isinstance(self.value, list) or at >= len(self.value):
            return None
        before = old.get(entry_key(self.value[at], self._schema))
        if before is None:
            return None
        child = self._children[at] = Correlated(self.value[at], before, items)
        return child

    @property
    def _old_entries(self) -> dict[object, Any] | None:
        if self._entries is False:
            self._entries = old_entries(self.old, self._schema)
        return self._entries

    @property
    def unchanged(self) -> bool:
        """Whether the part is what it was before, as far as the schema knows it."""
        if self._unchanged is None:
            self._unchanged = self._is_unchanged()
        return self._unchanged

    def _is_unchanged(self) -> bool:
        value, old = self.value, self.old
        if isinstance(value, list) and isinstance(old, list):
            if len(value) != len(old):
                return False
            if self._old_entries is None:
                return same_json(value, old)
            return all((child := self.index(at)) is not None and child.unchanged for at in range(len(value)))
        if isinstance(value, dict) and isinstance(old, dict):
            if len(value) != len(old):
                return False
            return all((child := self.key(name)) is not None and child.unchanged for name in value)
        return same_json(value, old)


def old_entries(old: Any, schema: Schema) -> dict[object, Any] | None:
    """The entries of a list by their keys; None where it is no list with keys."""
    if not isinstance(old, list) or not old or schema.get("x-kubernetes-list-type") != "map":
        return None
    found: dict[object, Any] = {}
    for entry in old:
        key = entry_key(entry, schema)
        if key is not None:
            found.setdefault(key, entry)
    return found


def entry_key(entry: Any, schema: Schema) -> object:
    """What tells an entry of a list with keys from the others; None where it lacks a key."""
    if not isinstance(entry, dict):
        return None
    values = [entry.get(key) for key in schema.get("x-kubernetes-list-map-keys") or ()]
    if not values or not all(isinstance(value, _SCALARS) for value in values):
        return None
    return tuple((type(value), value) for value in values)
