"""Holds what a write reads and changes beyond its object: the kinds, the store, the time and random numbers."""

from __future__ import annotations

import random

import msgspec

from podium.framework.clock import Clock
from podium_cluster.apiserver.errors import not_found
from podium_cluster.apiserver.kind import Kind, Kinds
from podium_cluster.apiserver.store.collection import Stored
from podium_cluster.apiserver.store.object_store import ObjectStore
from podium_cluster.apiserver.timestamps import timestamp


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
