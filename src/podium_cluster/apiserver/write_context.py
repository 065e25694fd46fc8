"""Holds what a write reads and changes beyond its object: the kinds, the store, the time and random numbers.
It writes times as the API does: UTC, to the second in metadata and conditions, finer in events and leases.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime
from functools import lru_cache

import msgspec

from podium.framework.clock import Clock
from podium_cluster.apiserver.errors import not_found
from podium_cluster.apiserver.kind import Kind, Kinds
from podium_cluster.apiserver.store.collection import Stored
from podium_cluster.apiserver.store.object_store import ObjectStore


def timestamp(seconds: float) -> str:
    return _to_the_second(int(seconds))


@lru_cache(maxsize=64)
def _to_the_second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def seconds_of(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


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


class WriteOptions(msgspec.Struct, frozen=True):
    """The options of a create, an update or a patch. `force` is server-side apply's; `is_patch` writes need not name a
    version. `raw` is the text of the body, where there is one; `warnings` collects what the answer warns about."""

    dry_run: bool = False
    field_validation: str = ""
    manager: str = ""
    force: bool = False
    is_patch: bool = False
    raw: bytes | None = None
    warnings: list[str] = msgspec.field(default_factory=list)


class DeleteOptions(msgspec.Struct, frozen=True):
    """The options of a deletion, preconditions included."""

    grace_seconds: int | None = None
    propagation: str = ""
    orphan_dependents: bool | None = None
    uid: str = ""
    resource_version: str = ""
    dry_run: bool = False
