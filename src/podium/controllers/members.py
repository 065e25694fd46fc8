"""Knows which objects of one collection concern which custom resources: those of the same group."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from typing import Any, TypeVar

from podium.controllers.controller import RelatedCollection
from podium.controllers.watches import SharedWatch
from podium.kube.json_object import JsonObject

K = TypeVar("K")
V = TypeVar("V")

NO_GROUP = object()
"""The group of a custom resource whose group cannot be read; no object belongs to it."""


class Members:
    """The objects and the custom resources of each group; `concerns` is called with the key of each custom resource
    that a change concerns."""

    def __init__(
        self, collection: RelatedCollection, watch: SharedWatch, concerns: Callable[[tuple[str, str]], None]
    ) -> None:
        self.watch = watch
        self.plural = collection.resource.plural
        self._collection = collection
        self._concerns = concerns
        self._group_of_key: dict[tuple[str, str], Hashable] = {}
        self._keys: dict[Hashable, dict[tuple[str, str], None]] = {}
        self._group_of_object: dict[str, Hashable] = {}
        self._objects: dict[Hashable, dict[str, Any]] = {}
        watch.listen(self._set, self._delete)

    def of(self, key: tuple[str, str]) -> Collection[Any]:
        """The objects that concern a custom resource."""
        return self._objects.get(self._group_of_key.get(key, NO_GROUP), {}).values()

    def set_item(self, key: tuple[str, str], item: JsonObject) -> None:
        try:
            group = self._collection.group_of_item(item)
        except (TypeError, LookupError, AttributeError):
            group = NO_GROUP
        self.watch.needed.set()
        self.delete_item(key)
        self._group_of_key[key] = group
        self._keys.setdefault(group, {})[key] = None

    def delete_item(self, key: tuple[str, str]) -> None:
        _remove(self._keys, self._group_of_key.pop(key, None), key)

    def _set(self, found: Any) -> None:
        key, group = _object_key(found), self._collection.group_of(found)
        if self._group_of_object.get(key, group) != group:
            self._delete(found)
        if group is not None:
            self._group_of_object[key] = group
            self._objects.setdefault(group, {})[key] = found
            self._changed(group)

    def _delete(self, found: Any) -> None:
        key = _object_key(found)
        if (group := self._group_of_object.pop(key, None)) is not None:
            _remove(self._objects, group, key)
            self._changed(group)

    def _changed(self, group: Hashable) -> None:
        for key in self._keys.get(group, ()):
            self._concerns(key)


def _object_key(found: Any) -> str:
    if not isinstance(found, dict):
        return str(found.key)
    metadata = found["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata['name']}"


def _remove(groups: dict[Hashable, dict[K, V]], group: Hashable, key: K) -> None:
    members = groups.get(group, {})
    members.pop(key, None)
    if not members:
        groups.pop(group, None)
