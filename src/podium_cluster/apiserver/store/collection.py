"""Holds the objects of one kind, in the API's order, with the changes that watches are answered from.

History is bounded in changes here and in bytes by the store. What has fallen out of it is `forgotten`: a watch or a
list from before that gets 410 Gone.
"""

from bisect import bisect_left, bisect_right, insort
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, Final, Literal, NamedTuple

import msgspec

from podium_cluster.apiserver.kind import FieldValues, Kind

_SNAPSHOTS: Final = 4
_decoder: Final = msgspec.json.Decoder(dict[str, Any])


class Stored(msgspec.Struct, frozen=True, gc=False):
    """One object at one revision. `raw` is its JSON, beginning with kind and apiVersion; `fields` are those that field
    selectors may ask for (Fields in kind.py). The labels are not to be changed."""

    kind: Kind
    namespace: str
    name: str
    uid: str
    revision: int
    raw: bytes
    labels: dict[str, str]
    fields: FieldValues

    def decode(self) -> dict[str, Any]:
        """The object, as a dictionary of the caller's own."""
        return _decoder.decode(self.raw)


class ObjectChange(NamedTuple):
    """One write. For DELETED `new` is the last state, at the revision of the deletion."""

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    new: Stored
    old: Stored | None


class ForgottenError(Exception):
    """What is asked about is older than the history; `oldest` is the first revision that can be asked about."""

    def __init__(self, oldest: int) -> None:
        super().__init__(f"history begins at revision {oldest}")
        self.oldest = oldest


class _Shelf:
    """The objects of one namespace, and their names in order."""

    __slots__ = ("names", "objects")

    def __init__(self) -> None:
        self.objects: dict[str, Stored] = {}
        self.names: list[str] = []


class Collection:
    """The objects of one kind with what has happened to them after revision `forgotten`."""

    def __init__(self, history: int, forgotten: int) -> None:
        self.shelves: dict[str, _Shelf] = {}
        self._namespaces: list[tuple[str, str]] = []
        self._changes: list[ObjectChange] = []
        self.history_bytes = 0
        self._history = history
        self._forgotten = forgotten
        self._snapshots: OrderedDict[int, list[Stored]] = OrderedDict()

    def get(self, namespace: str, name: str) -> Stored | None:
        shelf = self.shelves.get(namespace)
        return None if shelf is None else shelf.objects.get(name)

    def set(self, stored: Stored) -> Stored | None:
        shelf = self.shelves.get(stored.namespace)
        if shelf is None:
            shelf = self.shelves[stored.namespace] = _Shelf()
            insort(self._namespaces, (_namespace_key(stored.namespace), stored.namespace))
        old = shelf.objects.get(stored.name)
        shelf.objects[stored.name] = stored
        if old is None:
            insort(shelf.names, stored.name)
        return old

    def take(self, namespace: str, name: str) -> Stored:
        shelf = self.shelves[namespace]
        stored = shelf.objects.pop(name)
        del shelf.names[bisect_left(shelf.names, name)]
        if not shelf.names:
            del self.shelves[namespace]
            self._namespaces.remove((_namespace_key(namespace), namespace))
        return stored

    def ordered(self, namespace: str) -> Iterator[Stored]:
        spaces = [namespace] if namespace else [name for _, name in self._namespaces]
        for space in spaces:
            shelf = self.shelves.get(space)
            if shelf is not None:
                yield from map(shelf.objects.__getitem__, shelf.names)

    def record(self, change: ObjectChange) -> None:
        self._changes.append(change)
        self.history_bytes += len(change.new.raw)
        # Dropping an eighth at a time costs less than one by one.
        if len(self._changes) > self._history + self._history // 8:
            self._drop(len(self._changes) - self._history)

    def drop_oldest(self) -> None:
        """Forget the oldest eighth of the history."""
        self._drop(max(1, len(self._changes) // 8))

    @property
    def latest(self) -> int:
        """The revision of the last change, or of the moment before which everything is forgotten."""
        return self._changes[-1].new.revision if self._changes else self._forgotten

    def since(self, revision: int, limit: int | None = None) -> list[ObjectChange]:
        self._check(revision)
        changes = self._changes
        if not changes or changes[-1].new.revision <= revision:
            return []
        start = bisect_right(changes, revision, key=_revision_of)
        return changes[start:] if limit is None else changes[start : start + limit]

    def at(self, revision: int) -> list[Stored]:
        """What is stored now with every later change taken back; held for the next chunk of the same list."""
        self._check(revision)
        found = self._snapshots.get(revision)
        if found is None:
            later = self.since(revision)
            found = list(self.ordered("")) if not later else self._undone(later)
            self._snapshots[revision] = found
            if len(self._snapshots) > _SNAPSHOTS:
                self._snapshots.popitem(last=False)
        return found

    def forget(self, revision: int) -> None:
        self._changes.clear()
        self.history_bytes = 0
        self._snapshots.clear()
        self._forgotten = revision

    def _drop(self, count: int) -> None:
        dropped = self._changes[:count]
        self._forgotten = dropped[-1].new.revision
        self.history_bytes -= sum(len(change.new.raw) for change in dropped)
        del self._changes[:count]
        for revision in [revision for revision in self._snapshots if revision < self._forgotten]:
            del self._snapshots[revision]

    def _check(self, revision: int) -> None:
        if revision < self._forgotten:
            self._snapshots.pop(revision, None)
            raise ForgottenError(self._forgotten)

    def _undone(self, later: list[ObjectChange]) -> list[Stored]:
        objects = {(stored.namespace, stored.name): stored for stored in self.ordered("")}
        for change in reversed(later):
            key = (change.new.namespace, change.new.name)
            if change.old is None:
                objects.pop(key, None)
            else:
                objects[key] = change.old
        return [objects[key] for key in sorted(objects, key=lambda key: (_namespace_key(key[0]), key[1]))]


def _revision_of(change: ObjectChange) -> int:
    return change.new.revision


def _namespace_key(namespace: str) -> str:
    """Namespaces sort as the keys "namespace/name" do, where "a-b/x" comes before "a/x"."""
    return f"{namespace}/"
