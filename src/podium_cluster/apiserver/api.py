"""Offers the verbs of the API to callers in this process, each a plain synchronous call, without HTTP.

Objects given are not changed and objects returned are the caller's own. Refusals are StatusErrors. What a verb does is
in writes/; requests over HTTP go there directly (http/handler.py).

A new cluster begins with the objects that kube-apiserver makes: four namespaces, the two system priority classes, and
the ConfigMap that components read their trusted certificates from (here: none).
"""

from __future__ import annotations

import builtins
import random
from collections.abc import Iterable
from typing import Any, Final, Protocol

import msgspec

from podium.framework.clock import Clock
from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.kind import Kind, Kinds
from podium_cluster.apiserver.kinds import BUILT_IN
from podium_cluster.apiserver.kinds.pod_groups import V1ALPHA2, from_v1alpha2
from podium_cluster.apiserver.store import storage_form
from podium_cluster.apiserver.store.database import Database, Row
from podium_cluster.apiserver.store.object_store import HISTORY, ObjectStore
from podium_cluster.apiserver.store.selection import selection
from podium_cluster.apiserver.write_context import DeleteOptions, WriteContext, WriteOptions
from podium_cluster.apiserver.writes import custom_kinds
from podium_cluster.apiserver.writes.binding import bind
from podium_cluster.apiserver.writes.create import create
from podium_cluster.apiserver.writes.delete import delete
from podium_cluster.apiserver.writes.eviction import evict
from podium_cluster.apiserver.writes.update import patch_object, update

_NAMESPACES: Final = ("default", "kube-node-lease", "kube-public", "kube-system")
_PRIORITY_CLASSES: Final = (
    (
        "system-node-critical",
        2_000_001_000,
        "Used for system critical pods that must not be moved from their current node.",
    ),
    (
        "system-cluster-critical",
        2_000_000_000,
        "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
    ),
)


class Computed(Protocol):
    """Objects that exist only in the answer."""

    def get(self, namespace: str, name: str) -> JsonObject | None: ...

    def list(self, namespace: str, label_selector: str) -> builtins.list[JsonObject]: ...


class EmbeddedApi:
    """The embedded cluster's API. Uids and generated names come from `rng`, every time from `clock`. With a `database`
    it begins with what was stored there, and keeps it up to date. `gated_kinds` are served beside the built-in ones."""

    def __init__(
        self,
        *,
        clock: Clock,
        rng: random.Random,
        database: Database | None = None,
        history: int = HISTORY,
        bootstrap: bool = True,
        gated_kinds: Iterable[Kind] = (),
    ) -> None:
        if database is not None:
            # The same seed must not give again the uids that are in the file.
            rng = random.Random(f"{rng.getrandbits(64)} after revision {database.revision}")
        self.clock = clock
        self.kinds = Kinds((*BUILT_IN, *gated_kinds))
        self.store = ObjectStore(history=history)
        self.context = WriteContext(self.kinds, self.store, clock, rng)
        self.computed: dict[Kind, Computed] = {}
        """Kinds that are not stored but worked out when asked for, such as measured usage; add them to `kinds` too."""
        self.database = database
        if database is not None:
            self._load(database, custom=False)
        custom_kinds.follow(self.context)
        if database is not None:
            self._load(database, custom=True)
            self.store.write_ahead = database
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
        metadata = obj.get("metadata")
        space = namespace or (isinstance(metadata, dict) and metadata.get("namespace")) or "default"
        options = WriteOptions(dry_run=dry_run, field_validation=field_validation, manager=manager)
        return storage_form.decoded(create(self.context, kind, copied(obj), space, options), kind)

    def get(self, kind: Kind, namespace: str | None, name: str) -> JsonObject:
        return storage_form.decoded(self.context.stored(kind, namespace, name), kind)

    def list(
        self, kind: Kind, namespace: str | None = None, *, label_selector: str = "", field_selector: str = ""
    ) -> builtins.list[JsonObject]:
        chosen = selection(kind, label_selector, field_selector)
        return [
            storage_form.decoded(stored, kind) for stored in self.store.items(kind, namespace) if chosen.matches(stored)
        ]

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
        options = WriteOptions(dry_run=dry_run, field_validation=field_validation, manager=manager)
        name, namespace = given.get("name", ""), given.get("namespace")
        stored, _ = update(self.context, kind, namespace, name, copied(obj), subresource, options)
        return storage_form.decoded(stored, kind)

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
        options = WriteOptions(
            dry_run=dry_run, field_validation=field_validation, manager=manager, force=force, is_patch=True
        )
        stored, _ = patch_object(self.context, kind, namespace, name, copied(body), content_type, subresource, options)
        return storage_form.decoded(stored, kind)

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
        return storage_form.decoded(delete(self.context, kind, namespace, name, options).stored, kind)

    def bind(self, namespace: str, name: str, body: JsonObject, *, dry_run: bool = False) -> None:
        """Bind the pod to the node that a Binding (or just its `target`) names."""
        bind(self.context, namespace, name, body, dry_run=dry_run)

    def evict(self, namespace: str, name: str, body: JsonObject | None = None, *, dry_run: bool = False) -> None:
        """Delete the pod unless a PodDisruptionBudget forbids that now (429)."""
        evict(self.context, namespace, name, body or {}, dry_run=dry_run)

    def writable(self) -> bool:
        """Whether writes can succeed."""
        return self.database is None or self.database.writable()

    def _load(self, database: Database, *, custom: bool) -> None:
        """Take in what was stored: custom kinds are known only after their definitions."""
        found = []
        for row in map(_in_served_version, database.rows()):
            kind = self.kinds.by_kind(row.api_version, row.kind)
            if kind is not None and kind.custom == custom:
                found.append((kind, row.raw))
        self.store.load(database.revision, found)


def _in_served_version(row: Row) -> Row:
    """What was stored in a version that is no longer served, in the one that took its place."""
    if row.api_version != V1ALPHA2:
        return row
    new = from_v1alpha2(msgspec.json.decode(row.raw))
    return row._replace(api_version=new["apiVersion"], raw=msgspec.json.encode(new))


def copied(obj: Any) -> Any:
    """A copy that shares nothing with the original."""
    return msgspec.json.decode(msgspec.json.encode(obj))


def initial_objects() -> list[dict[str, Any]]:
    """In the order they are to be created; those that exist already stay as they are."""
    namespaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in _NAMESPACES]
    classes = [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": value,
            "description": description,
            "preemptionPolicy": "PreemptLowerPriority",
        }
        for name, value, description in _PRIORITY_CLASSES
    ]
    authentication = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "extension-apiserver-authentication", "namespace": "kube-system"},
        "data": {},
    }
    return [*namespaces, *classes, authentication]
