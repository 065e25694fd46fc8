"""What a request does, without HTTP: the verbs on kinds, each a plain synchronous call.

A write goes the way it goes in kube-apiserver: fields are checked and defaulted, admission, what the server decides is
filled in, the kind's rules prepare and validate, and the store takes it with the next revision. Nothing here waits, so
a write is seen whole by everybody or not at all.

Objects given are not changed and objects returned are the caller's own. Refusals are StatusErrors.
"""

from __future__ import annotations

import builtins
import random
from typing import Any, Protocol

import msgspec

from podium.apiserver import deleting, forms, handling, writing
from podium.apiserver.bootstrap import initial_objects
from podium.apiserver.database import Database
from podium.apiserver.deleting import Deleted, DeleteOptions
from podium.apiserver.errors import not_found
from podium.apiserver.kinds import BUILT_IN, POD, Kind, Kinds
from podium.apiserver.requests import Request, Response
from podium.apiserver.rules import Context
from podium.apiserver.schema import OpenApi, establishing
from podium.apiserver.selection import selection
from podium.apiserver.store import HISTORY, Store, Stored
from podium.apiserver.subresources import binding, eviction
from podium.apiserver.timestamps import timestamp
from podium.apiserver.watches import WatchRequest
from podium.framework.clock import Clock
from podium.kube.json_object import JsonObject


class Computed(Protocol):
    """Objects that exist only in the answer."""

    def get(self, namespace: str, name: str) -> JsonObject | None: ...

    def list(self, namespace: str, label_selector: str) -> builtins.list[JsonObject]: ...


class Api:
    """The embedded cluster's API. Uids and generated names come from `rng`, every time from `clock`. With a `database`
    it begins with what was stored there, and keeps it up to date."""

    def __init__(
        self,
        *,
        clock: Clock,
        rng: random.Random,
        database: Database | None = None,
        history: int = HISTORY,
        bootstrap: bool = True,
    ) -> None:
        self.clock = clock
        self.rng = rng
        self.kinds = Kinds(BUILT_IN)
        self.store = Store(history=history)
        self.computed: dict[Kind, Computed] = {}
        """Kinds that are not stored but worked out when asked for, such as measured usage; add them to `kinds` too."""
        self.openapi = OpenApi(self.kinds)
        self.documents: dict[tuple[int, str, str], Response] = {}
        """What discovery has made, by the generation of `kinds`."""
        self.database = database
        if database is not None:
            self._load(database, custom=False)
        establishing.follow(self)
        if database is not None:
            self._load(database, custom=True)
            database.follow(self.store)
            # The same seed must not give again the uids that are in the file.
            self.rng = random.Random(f"{rng.getrandbits(64)} after revision {database.revision()}")
        if bootstrap:
            self.bootstrap()

    def bootstrap(self) -> None:
        """Create what every cluster has, where it is missing."""
        for obj in initial_objects():
            kind = self.kinds.by_kind(obj["apiVersion"], obj["kind"])
            assert kind is not None
            if self.store.get(kind, obj["metadata"].get("namespace"), obj["metadata"]["name"]) is None:
                self.create(kind, obj)

    def create(
        self,
        kind: Kind,
        obj: JsonObject,
        *,
        namespace: str | None = None,
        dry_run: bool = False,
        field_validation: str = "",
        manager: str = "",
    ) -> JsonObject:
        """Create the object in `namespace`, or in the one its metadata names, or in "default"."""
        space = namespace or (obj.get("metadata") or {}).get("namespace") or "default"
        options = writing.Options(dry_run=dry_run, field_validation=field_validation, manager=manager)
        return forms.decoded(self.create_stored(kind, copied(obj), space, options), kind)

    def get(self, kind: Kind, namespace: str | None, name: str) -> JsonObject:
        return forms.decoded(self.stored(kind, namespace, name), kind)

    def list(
        self, kind: Kind, namespace: str | None = None, *, label_selector: str = "", field_selector: str = ""
    ) -> builtins.list[JsonObject]:
        chosen = selection(kind, label_selector, field_selector)
        return [forms.decoded(stored, kind) for stored in self.store.items(kind, namespace) if chosen.matches(stored)]

    def update(
        self,
        kind: Kind,
        obj: JsonObject,
        *,
        subresource: str = "",
        dry_run: bool = False,
        field_validation: str = "",
        manager: str = "",
    ) -> JsonObject:
        """Replace the object, or its `subresource`; a resourceVersion that is given must be the current one."""
        given = obj.get("metadata") or {}
        options = writing.Options(dry_run=dry_run, field_validation=field_validation, manager=manager)
        name, namespace = given.get("name", ""), given.get("namespace")
        stored, _ = self.update_stored(kind, namespace, name, copied(obj), subresource, options)
        return forms.decoded(stored, kind)

    def patch(
        self,
        kind: Kind,
        namespace: str | None,
        name: str,
        body: Any,
        content_type: str,
        *,
        subresource: str = "",
        manager: str = "",
        force: bool = False,
        dry_run: bool = False,
        field_validation: str = "",
    ) -> JsonObject:
        """Change part of the object; `content_type` says in which way (application/merge-patch+json, …)."""
        options = writing.Options(
            dry_run=dry_run, field_validation=field_validation, manager=manager, force=force, is_patch=True
        )
        stored, _ = self.patch_stored(kind, namespace, name, copied(body), content_type, subresource, options)
        return forms.decoded(stored, kind)

    def delete(
        self,
        kind: Kind,
        namespace: str | None,
        name: str,
        *,
        grace_seconds: int | None = None,
        propagation: str = "",
        uid: str = "",
        resource_version: str = "",
        dry_run: bool = False,
    ) -> JsonObject:
        """Delete the object, or mark it where something must happen first; its last state comes back."""
        options = DeleteOptions(
            grace_seconds=grace_seconds,
            propagation=propagation,
            uid=uid,
            resource_version=resource_version,
            dry_run=dry_run,
        )
        return forms.decoded(self.delete_stored(kind, namespace, name, options).stored, kind)

    def bind(self, namespace: str, name: str, body: JsonObject, *, dry_run: bool = False) -> None:
        """Bind the pod to the node that a Binding (or just its `target`) names."""
        writing.admit_namespace(self, POD, namespace, name)
        binding.bind(self, namespace, name, body, dry_run=dry_run)

    def evict(self, namespace: str, name: str, body: JsonObject | None = None, *, dry_run: bool = False) -> None:
        """Delete the pod unless a PodDisruptionBudget forbids that now (429)."""
        writing.admit_namespace(self, POD, namespace, name)
        eviction.evict(self, namespace, name, body or {}, dry_run=dry_run)

    def handle(self, request: Request) -> Response | WatchRequest:
        """The whole of a request as it came over the network."""
        return handling.handle(self, request)

    # What the calls above and the handling of requests share: objects as they are stored.

    def stored(self, kind: Kind, namespace: str | None, name: str) -> Stored:
        found = self.store.get(kind, namespace, name)
        if found is None:
            raise not_found(kind, name)
        return found

    def create_stored(self, kind: Kind, obj: JsonObject, namespace: str, options: writing.Options) -> Stored:
        return writing.create(self, kind, obj, namespace, options)

    def update_stored(
        self, kind: Kind, namespace: str | None, name: str, obj: JsonObject, subresource: str, options: writing.Options
    ) -> tuple[Stored, bool]:
        """What is stored now, and whether the update created it."""
        return writing.update(self, kind, namespace, name, obj, subresource, options)

    def patch_stored(
        self,
        kind: Kind,
        namespace: str | None,
        name: str,
        body: Any,
        content_type: str,
        subresource: str,
        options: writing.Options,
    ) -> tuple[Stored, bool]:
        return writing.patch(self, kind, namespace, name, body, content_type, subresource, options)

    def delete_stored(self, kind: Kind, namespace: str | None, name: str, options: DeleteOptions) -> Deleted:
        found = self.stored(kind, namespace, name)
        return deleting.delete(self.store, kind, found, options, self.clock.now())

    async def kept(self) -> None:
        """Return when everything written so far would survive a crash, as far as this API promises that."""
        if self.database is not None:
            await self.database.committed()

    def context(self, kind: Kind) -> Context:
        return Context(kind, self.now(), self.store, self.kinds, self.rng)

    def _load(self, database: Database, *, custom: bool) -> None:
        """Take in what was stored: custom kinds are known only after their definitions."""
        found = []
        for row in database.rows():
            kind = self.kinds.by_kind(row.api_version, row.kind)
            if kind is not None and kind.custom == custom:
                found.append((kind, row.raw))
        self.store.load(database.revision(), found)

    def now(self) -> str:
        """The time as the API writes it."""
        return timestamp(self.clock.now())


def copied(obj: Any) -> Any:
    """A copy that shares nothing with the original."""
    return msgspec.json.decode(msgspec.json.encode(obj))
