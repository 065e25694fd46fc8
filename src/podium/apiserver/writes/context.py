"""Holds what a write reads and changes beyond its object: the kinds, the store, the time and random numbers."""

from __future__ import annotations

import random

import msgspec

from podium.apiserver.errors import not_found
from podium.apiserver.kinds import Kind, Kinds
from podium.apiserver.store.collection import Stored
from podium.apiserver.store.object_store import ObjectStore
from podium.apiserver.timestamps import timestamp
from podium.framework.clock import Clock


class WriteContext(msgspec.Struct, frozen=True):
    """The environment of a write. Uids and generated names come from `rng`, every time from `clock`."""

    kinds: Kinds
    store: ObjectStore
    clock: Clock
    rng: random.Random

    def now(self) -> str:
        """The time as the API writes it."""
        return timestamp(self.clock.now())

    def stored(self, kind: Kind, namespace: str | None, name: str) -> Stored:
        """The object of that name; StatusError 404 where there is none."""
        found = self.store.get(kind, namespace, name)
        if found is None:
            raise not_found(kind, name)
        return found
