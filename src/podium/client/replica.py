"""Keeps a copy of a collection that never goes backwards, and delivers every change of it exactly once.

Watches are cut and begin again, lists arrive in between, and events may come twice or late. The rules:

- An object is replaced only by a newer version of itself: resource versions are compared as numbers, where they are.
- Another UID under the same key is another object: the one before it went, unless the event is older than the store.
- An object that has gone does not come back through an event from before it went.
- A list is the truth: what it lacks has gone, what differs has changed, what is the same is not mentioned.

A follower that fails is reported and changes nothing for anybody else.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from podium.client.reading import FoundObject, ObjectIdentity

T = TypeVar("T")

BATCH = 100
"""Objects that are handled between two breaths of the event loop."""

_TOMBSTONES = 1000
_log = logging.getLogger(__name__)


class Replica(Generic[T]):
    """`store` has the objects by key, `raw` their JSON where there is one."""

    def __init__(
        self,
        identify: Callable[[T], ObjectIdentity],
        *,
        on_set: Callable[[T], None],
        on_delete: Callable[[T], None],
        failed: Callable[[str, Exception], None],
    ) -> None:
        self.store: dict[str, T] = {}
        self.raw: dict[str, bytes] = {}
        self._identify = identify
        self._on_set = on_set
        self._on_delete = on_delete
        self._failed = failed
        self._gone: dict[str, str] = {}  # the version at which an object went, for the latest of them
        self._floor = ""  # of anything not in the store, events up to this version are old

    def set(self, found: FoundObject[T]) -> None:
        """An object was added or changed; one that could not be read changes nothing but the one it replaces."""
        key, uid, version = found.identity
        known = self.store.get(key)
        if known is None:
            if _not_newer(version, self._gone.get(key, self._floor)):
                return
        else:
            before = self._identify(known)
            if _not_newer(version, before.version):
                return
            if uid != before.uid:
                self._remove(key, version, known)
        self._put(key, found)

    def delete(self, found: FoundObject[T]) -> None:
        """An object went, or is no longer one of those selected."""
        key, uid, version = found.identity
        known = self.store.get(key)
        if known is None:
            self._bury(key, version)
            return
        before = self._identify(known)
        if version != before.version and _not_newer(version, before.version):
            return
        self._remove(key, version, known if found.object is None or uid != before.uid else found.object)

    async def replace(self, listed: Iterable[FoundObject[T]], version: str) -> None:
        """All there is, as of `version`. What came is delivered before what went: a decision made in between may take
        something for taken that is free, but never for free what is taken."""
        present = {found.identity.key: found for found in listed}
        steps = 0
        for key, found in present.items():
            steps += 1
            if steps % BATCH == 0:
                await asyncio.sleep(0)
            known = self.store.get(key)
            if known is not None:
                before = self._identify(known)
                if before.version == found.identity.version:
                    continue
                if before.uid != found.identity.uid:
                    self._remove(key, version, known)
            self._put(key, found)
        for key in list(self.store):
            steps += 1
            if steps % BATCH == 0:
                await asyncio.sleep(0)
            if key not in present:
                self._remove(key, version, self.store[key])
        self._gone.clear()
        self._floor = version

    def _put(self, key: str, found: FoundObject[T]) -> None:
        if found.object is None:
            return
        self.store[key] = found.object
        if found.raw is not None:
            self.raw[key] = found.raw
        try:
            self._on_set(found.object)
        except Exception as error:  # a follower may raise anything; the replica itself is whole
            _log.debug("a follower of %s failed", key, exc_info=True)
            self._failed(key, error)

    def _remove(self, key: str, version: str, last: T) -> None:
        del self.store[key]
        self.raw.pop(key, None)
        self._bury(key, version)
        try:
            self._on_delete(last)
        except Exception as error:  # a follower may raise anything; the replica itself is whole
            _log.debug("a follower of %s failed", key, exc_info=True)
            self._failed(key, error)

    def _bury(self, key: str, version: str) -> None:
        if _not_newer(version, self._gone.get(key, self._floor)):
            return
        self._gone.pop(key, None)
        self._gone[key] = version
        if len(self._gone) > _TOMBSTONES:
            del self._gone[next(iter(self._gone))]


def _not_newer(version: str, than: str) -> bool:
    if not (version.isdecimal() and than.isdecimal()):
        return version == than != ""
    return int(version) <= int(than)
