"""Stores every object as encoded bytes, with one revision counter and the history that watches are answered from.

An object is stored exactly as it is sent: the store shares no mutable dictionary, fifty thousand pods cost little more
than their text, and a list or a watch copies bytes instead of encoding. Each write takes the next revision, which
becomes the object's resourceVersion, and is passed to the listeners in order; what a listener writes is passed on after
all listeners have had the write before.

The history of a collection is bounded. What has fallen out of it is `forgotten`: a watch or list from before that gets
410 Gone.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final, Protocol

import msgspec

from podium_cluster.apiserver.errors import StorageError
from podium_cluster.apiserver.kind import Kind
from podium_cluster.apiserver.store.collection import Collection, ObjectChange, Stored

Listener = Callable[[ObjectChange], None]

HISTORY: Final = 20_000
"""Changes of one collection that are remembered."""
HISTORY_BYTES: Final = 256 << 20
"""Bytes of the objects in the histories of all collections together."""

_NO_LISTENERS: Final[dict[object, Listener]] = {}
_NO_LABELS: Final[dict[str, str]] = {}
_EXPONENT: Final = 1e21
"""From here on numbers are written with an exponent."""
_encoder: Final = msgspec.json.Encoder()
_decoder: Final = msgspec.json.Decoder(dict[str, Any])


class WriteAheadLog(Protocol):
    """Where each write is written down before it is made; StorageError where that fails."""

    def put(self, stored: Stored) -> None: ...

    def remove(self, last: Stored) -> None: ...


class ObjectStore:
    """Every object of one API. `history` bounds how many changes of each collection are held for watches and lists of
    the past, `history_bytes` how large the objects in them are, in all collections together."""

    def __init__(self, *, history: int = HISTORY, history_bytes: int = HISTORY_BYTES) -> None:
        self.revision = 1
        self.write_ahead: WriteAheadLog | None = None
        self._history_limit = history_bytes
        self._history_bytes = 0
        self._history = history
        self._collections: dict[str, Collection] = {}
        self._listeners: dict[object, Listener] = {}
        self._listeners_of: dict[str, dict[object, Listener]] = {}
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
        if self.write_ahead is not None:
            self.write_ahead.put(new)
        self.revision += 1
        old = collection.set(new)
        self._record(collection, ObjectChange("ADDED" if old is None else "MODIFIED", new, old))
        return new

    def remove(self, kind: Kind, namespace: str | None, name: str) -> Stored:
        """Take the object out; KeyError if there is none. What comes back is its last state at the new revision."""
        collection = self._collection(kind)
        old = collection.get(namespace or "", name)
        if old is None:
            raise KeyError(name)
        last = encode(old.kind, old.decode(), self.revision + 1)
        if self.write_ahead is not None:
            self.write_ahead.remove(last)
        collection.take(namespace or "", name)
        self.revision += 1
        self._record(collection, ObjectChange("DELETED", last, old))
        return last

    def listen(self, listener: Listener, kind: Kind | None = None) -> Callable[[], None]:
        """Have `listener` called after each write, or each write to one kind's collection; call the answer to stop,
        once or more often."""
        listeners = self._listeners if kind is None else self._listeners_of.setdefault(kind.stored_in, {})
        token = object()
        listeners[token] = listener

        def stop() -> None:
            listeners.pop(token, None)

        return stop

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
            self._history_bytes -= collection.history_bytes
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

    def _collection(self, kind: Kind) -> Collection:
        collection = self._collections.get(kind.stored_in)
        if collection is None:
            collection = Collection(self._history, self._forgotten_at_start)
            self._collections[kind.stored_in] = collection
        return collection

    def _record(self, collection: Collection, change: ObjectChange) -> None:
        before = collection.history_bytes
        collection.record(change)
        self._history_bytes += collection.history_bytes - before
        if self._history_bytes > self._history_limit:
            self._bound_history()
        self._pending.append(change)
        if self._notifying:
            return
        self._notifying = True
        failed: StorageError | None = None
        try:
            while self._pending:
                pending = self._pending.popleft()
                of_kind = self._listeners_of.get(pending.new.kind.stored_in, _NO_LISTENERS)
                for listener in (*self._listeners.values(), *of_kind.values()):
                    try:
                        listener(pending)
                    except (
                        StorageError
                    ) as error:  # What it wrote failed; the others must hear of this change all the same.
                        failed = error
        finally:
            self._notifying = False
        if failed is not None:
            raise failed

    def _bound_history(self) -> None:
        """Forget the oldest changes of the largest histories, until all together are within their bytes."""
        while self._history_bytes > self._history_limit:
            largest = max(self._collections.values(), key=lambda each: each.history_bytes)
            before = largest.history_bytes
            largest.drop_oldest()
            self._history_bytes -= before - largest.history_bytes


def encode(kind: Kind, obj: dict[str, Any], revision: int | None) -> Stored:
    """The object as it will be stored; its resourceVersion, kind and apiVersion are set. Without a revision it is one
    that only would be. Of a custom object, 1.0 becomes 1, as kube-apiserver writes it."""
    if revision is not None:
        obj["metadata"]["resourceVersion"] = str(revision)
    if kind.custom:
        obj = _with_whole_numbers(obj)
    ordered = {"kind": kind.kind, "apiVersion": kind.api_version, **obj}
    ordered["kind"], ordered["apiVersion"] = kind.kind, kind.api_version
    return _stored(kind, obj, revision or 0, _encoder.encode(ordered))


def _with_whole_numbers(value: Any) -> Any:
    """The value with numbers that are whole written as such."""
    if isinstance(value, dict):
        return {name: _with_whole_numbers(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_with_whole_numbers(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < _EXPONENT else value


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
        kind.fields.values(obj),
    )
