"""Stores every object as encoded bytes, with one revision counter and the history that watches are answered from.

An object is stored exactly as it is sent: the store shares no mutable dictionary, fifty thousand pods cost little more
than their text, and a list or a watch copies bytes instead of encoding. Each write takes the next revision, which
becomes the object's resourceVersion, and is passed to the listeners in order; what a listener writes is passed on after
all listeners have had the write before.

The history of a collection is bounded. What has fallen out of it is `forgotten`: a watch or list from before that gets
410 Gone.
"""

from bisect import bisect_left, bisect_right, insort
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Literal, NamedTuple

import msgspec

from podium.apiserver.kinds import Kind
from podium.apiserver.store.field_values import Values, values

HISTORY: Final = 20_000
"""Changes of one collection that are remembered."""
_SNAPSHOTS: Final = 4

_NO_LABELS: Final[dict[str, str]] = {}
_encoder: Final = msgspec.json.Encoder()
_decoder: Final = msgspec.json.Decoder(dict[str, Any])


class Stored(msgspec.Struct, frozen=True, gc=False):
    """One object at one revision. `raw` is its JSON, beginning with kind and apiVersion; `fields` are those that field
    selectors may ask for (fields.py). The labels are not to be changed."""

    kind: Kind
    namespace: str
    name: str
    uid: str
    revision: int
    raw: bytes
    labels: dict[str, str]
    fields: Values

    def decode(self) -> dict[str, Any]:
        """The object, as a dictionary of the caller's own."""
        return _decoder.decode(self.raw)


class ObjectChange(NamedTuple):
    """One write. For DELETED `new` is the last state, at the revision of the deletion."""

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    new: Stored
    old: Stored | None


Listener = Callable[[ObjectChange], None]


class ForgottenError(Exception):
    """What is asked about is older than the history; `oldest` is the first revision that can be asked about."""

    def __init__(self, oldest: int) -> None:
        super().__init__(f"history begins at revision {oldest}")
        self.oldest = oldest


class ObjectStore:
    """`history` bounds how many changes of each collection are held for watches and for lists of the past."""

    def __init__(self, *, history: int = HISTORY) -> None:
        self.revision = 1
        self._history = history
        self._collections: dict[str, _Collection] = {}
        self._listeners: list[Listener] = []
        self._listeners_of: dict[str, list[Listener]] = {}
        self._pending: deque[ObjectChange] = deque()
        self._notifying = False

    def get(self, kind: Kind, namespace: str | None, name: str) -> Stored | None:
        collection = self._collections.get(kind.stored_in)
        return None if collection is None else collection.get(namespace or "", name)

    def items(self, kind: Kind, namespace: str | None = None) -> list[Stored]:
        """All objects of the kind, or those of one namespace, in the API's order."""
        collection = self._collections.get(kind.stored_in)
        return [] if collection is None else list(collection.ordered(namespace or ""))

    def count(self, kind: Kind) -> int:
        collection = self._collections.get(kind.stored_in)
        return 0 if collection is None else sum(len(shelf.objects) for shelf in collection.shelves.values())

    def put(self, kind: Kind, obj: dict[str, Any]) -> Stored:
        """Store the object under its metadata's namespace and name, new or not; sets its resourceVersion."""
        collection = self._collection(kind)
        new = encode(kind, obj, self.revision + 1)
        self.revision += 1
        old = collection.set(new)
        self._record(collection, ObjectChange("ADDED" if old is None else "MODIFIED", new, old))
        return new

    def remove(self, kind: Kind, namespace: str | None, name: str) -> Stored:
        """Take the object out; KeyError if there is none. What comes back is its last state at the new revision."""
        collection = self._collection(kind)
        old = collection.take(namespace or "", name)
        self.revision += 1
        last = encode(old.kind, old.decode(), self.revision)
        self._record(collection, ObjectChange("DELETED", last, old))
        return last

    def listen(self, listener: Listener, kind: Kind | None = None) -> Callable[[], None]:
        """Have `listener` called after each write, or each write to one kind's collection; call the answer to stop."""
        listeners = self._listeners if kind is None else self._listeners_of.setdefault(kind.stored_in, [])
        listeners.append(listener)
        return lambda: listeners.remove(listener)

    def changes_since(self, kind: Kind, revision: int, limit: int | None = None) -> list[ObjectChange]:
        """What was written to the kind's collection after `revision`, oldest first, at most `limit` of it."""
        return self._collection(kind).since(revision, limit)

    def changes_since_exist(self, kind: Kind, revision: int) -> bool:
        """Whether `changes_since` has anything to tell, if only that it has forgotten."""
        return self._collection(kind).latest > revision

    def at(self, kind: Kind, revision: int) -> list[Stored]:
        """All objects of the kind as they were at `revision`, in the API's order."""
        return self._collection(kind).at(revision)

    def forget(self, kind: Kind | None = None) -> None:
        """Drop the history, of one kind's collection or of all: who asks about what it held gets 410."""
        for collection in self._collections.values() if kind is None else (self._collection(kind),):
            collection.forget(collection.latest)

    def load(self, revision: int, objects: Iterable[tuple[Kind, bytes]]) -> None:
        """Fill an empty store with what was stored before; the past of it is forgotten."""
        for kind, raw in objects:
            obj = _decoder.decode(raw)
            self._collection(kind).set(_stored(kind, obj, int(obj["metadata"]["resourceVersion"]), raw))
        self.revision = self._forgotten_at_start = max(self.revision, revision)
        for collection in self._collections.values():
            collection.forget(self.revision)

    _forgotten_at_start = 1

    def _collection(self, kind: Kind) -> "_Collection":
        collection = self._collections.get(kind.stored_in)
        if collection is None:
            collection = _Collection(self._history, self._forgotten_at_start)
            self._collections[kind.stored_in] = collection
        return collection

    def _record(self, collection: "_Collection", change: ObjectChange) -> None:
        collection.record(change)
        self._pending.append(change)
        if self._notifying:
            return
        self._notifying = True
        try:
            while self._pending:
                pending = self._pending.popleft()
                for listener in (*self._listeners, *self._listeners_of.get(pending.new.kind.stored_in, ())):
                    listener(pending)
        finally:
            self._notifying = False


def encode(kind: Kind, obj: dict[str, Any], revision: int | None) -> Stored:
    """The object as it will be stored; its resourceVersion, kind and apiVersion are set. Without a revision it is one
    that only would be."""
    if revision is not None:
        obj["metadata"]["resourceVersion"] = str(revision)
    ordered = {"kind": kind.kind, "apiVersion": kind.api_version, **obj}
    ordered["kind"], ordered["apiVersion"] = kind.kind, kind.api_version
    return _stored(kind, obj, revision or 0, _encoder.encode(ordered))


def _stored(kind: Kind, obj: dict[str, Any], revision: int, raw: bytes) -> Stored:
    metadata = obj["metadata"]
    return Stored(
        kind,
        metadata.get("namespace") or "",
        metadata["name"],
        metadata.get("uid", ""),
        revision,
        raw,
        dict(labels) if (labels := metadata.get("labels")) else _NO_LABELS,
        values(kind, obj),
    )


class _Shelf:
    """The objects of one namespace, and their names in order."""

    __slots__ = ("names", "objects")

    def __init__(self) -> None:
        self.objects: dict[str, Stored] = {}
        self.names: list[str] = []


class _Collection:
    """The objects of one kind with what has happened to them after revision `forgotten`."""

    def __init__(self, history: int, forgotten: int) -> None:
        self.shelves: dict[str, _Shelf] = {}
        self._namespaces: list[tuple[str, str]] = []
        self._changes: list[ObjectChange] = []
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
        # Dropping an eighth at a time costs less than one by one.
        if len(self._changes) > self._history + self._history // 8:
            dropped = len(self._changes) - self._history
            self._forgotten = self._changes[dropped - 1].new.revision
            del self._changes[:dropped]

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
        self._snapshots.clear()
        self._forgotten = revision

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
