"""Watches a collection: what has changed since a revision, and from then on whatever changes.

A watcher is a position in the store's history, not a queue: it holds nothing of what it has yet to send. One that does
not read falls back until history has forgotten its position; then it gets 410 and ends. So a stuck client costs no
memory, however long it is stuck.

What a change means for a watcher depends on its selection: an object that begins to match is ADDED, one that ceases to
is DELETED, as it was when it last matched.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final, Protocol

import msgspec

from podium_cluster.apiserver.errors import StatusError, expired
from podium_cluster.apiserver.kind import Kind
from podium_cluster.apiserver.store import storage_form
from podium_cluster.apiserver.store.collection import ForgottenError, ObjectChange, Stored
from podium_cluster.apiserver.store.object_store import ObjectStore, encode
from podium_cluster.apiserver.store.selection import Selection

BATCH: Final = 500
"""Changes that are written at once; then the client must have taken them before the next are looked at."""
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"


class Show(Protocol):
    """How an object is sent: as it is, or as a table or its metadata."""

    def __call__(self, stored: Stored) -> bytes: ...


class WatchRequest(msgspec.Struct):
    """What a watch is about. `revision` is where it begins; with `initial` it first tells what is there."""

    kind: Kind
    namespace: str
    selection: Selection
    revision: int
    initial: bool = False
    marks_initial_end: bool = False
    bookmarks: bool = False
    timeout: float | None = None
    show: Show | None = None
    failure: StatusError | None = None
    """Why it cannot begin: sent as the only event."""


class Watcher:
    """One watch under way. `events` gives what is to be sent now, `wait` sleeps until there may be more."""

    def __init__(self, store: ObjectStore, request: WatchRequest) -> None:
        self._store = store
        self._request = request
        self._position = request.revision
        self._everything = request.selection.everything
        self._show: Callable[[Stored], bytes] = request.show or self._as_it_is
        self._initial: list[Stored] | None = None
        self._awoken: asyncio.Future[None] | None = None
        self._stop_listening = store.listen(self._on_change, request.kind)
        self.ended = request.failure is not None
        if request.initial:
            chosen = request.selection
            items = store.items(request.kind, request.namespace)
            self._initial = items if self._everything else [item for item in items if chosen.matches(item)]
            self._initial.reverse()
            self._position = store.revision

    def close(self) -> None:
        self.ended = True
        self._stop_listening()
        self._wake()

    def events(self) -> bytes:
        """What to send now, at most a batch of it; empty when everything has been sent. Sets `ended` after the last."""
        if self._request.failure is not None:
            failure, self._request.failure = self._request.failure, None
            return event("ERROR", msgspec.json.encode(failure.status()))
        if self._initial is not None:
            return self._initial_events(self._initial)
        if self.ended:
            return b""
        try:
            changes = self._store.changes_since(self._request.kind, self._position, BATCH)
        except ForgottenError as error:
            self.ended = True
            return event("ERROR", msgspec.json.encode(too_old(self._position, error).status()))
        frames: list[bytes] = []
        for change in changes:
            self._position = change.new.revision
            if (frame := self._frame(change)) is not None:
                frames.append(frame)
        if changes and not frames:
            return self.events()
        return b"".join(frames)

    def bookmark(self, annotations: dict[str, str] | None = None) -> bytes:
        """An event that only says how far the watch has come."""
        metadata: dict[str, Any] = {"resourceVersion": str(max(self._position, self._caught_up()))}
        if annotations:
            metadata["annotations"] = annotations
        kind = self._request.kind
        obj = {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata}
        return event("BOOKMARK", msgspec.json.encode(obj))

    async def wait(self, timeout: float | None) -> None:
        """Until something has been written to the collection, or `timeout` has passed."""
        if self.ended or self._store.changes_since_exist(self._request.kind, self._position):
            return
        self._awoken = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(timeout):
                await self._awoken
        except TimeoutError:
            pass
        finally:
            self._awoken = None

    def _initial_events(self, left: list[Stored]) -> bytes:
        batch = [event("ADDED", self._show(left.pop())) for _ in range(min(BATCH, len(left)))]
        if not left:
            self._initial = None
            if self._request.marks_initial_end and self._request.bookmarks:
                batch.append(self.bookmark({INITIAL_EVENTS_END: "true"}))
        return b"".join(batch)

    def _frame(self, change: ObjectChange) -> bytes | None:
        request, new, old = self._request, change.new, change.old
        if request.namespace and new.namespace != request.namespace:
            return None
        chosen = request.selection
        if self._everything:
            return event(change.type, self._show(new))
        matched = old is not None and chosen.matches(old)
        if change.type != "DELETED" and chosen.matches(new):
            return event("MODIFIED" if matched else "ADDED", self._show(new))
        if not matched or old is None:
            return None
        left = new if change.type == "DELETED" else encode(old.kind, old.decode(), new.revision)
        return event("DELETED", self._show(left))

    def _caught_up(self) -> int:
        """The revision of the store when nothing of the collection is left to send; else this watch's own."""
        pending = self._initial is not None or self._store.changes_since_exist(self._request.kind, self._position)
        return self._position if pending else self._store.revision

    def _as_it_is(self, stored: Stored) -> bytes:
        return storage_form.presented(stored, self._request.kind)

    def _on_change(self, change: ObjectChange) -> None:
        self._wake()

    def _wake(self) -> None:
        if self._awoken is not None and not self._awoken.done():
            self._awoken.set_result(None)


def event(kind: str, raw: bytes) -> bytes:
    """One line of a watch."""
    return b'{"type":"%b","object":%b}\n' % (kind.encode(), raw)


def too_old(revision: int, error: ForgottenError) -> StatusError:
    return expired(f"too old resource version: {revision} ({error.oldest})")
