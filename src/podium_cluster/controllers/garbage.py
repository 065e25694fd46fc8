"""Collects garbage: objects whose owners are gone, leftover pods, old events, and namespaces that are deleted.

An object whose owners are all gone is deleted; one that has an owner left only loses its references to those that are
gone. An owner deleted in the foreground stays until those dependents that block it are gone, and they are deleted in
the foreground as well; one deleted with "orphan" stays until its dependents no longer refer to it.

Pods go that no other controller cleans up: those of nodes that are gone, those deleted before they had a node,
and the oldest of very many that have ended.
Events go an hour after they were last written: what kube-apiserver has its storage do.
Of a deleted namespace
everything in it goes first, then the finalizer, and with it the namespace.
"""

from __future__ import annotations

import msgspec

from podium.kube.decode import decode_json
from podium.kube.json_object import JsonObject
from podium.kube.meta import OwnerReference
from podium.kube.node import Node
from podium_cluster.apiserver.errors import StatusError
from podium_cluster.apiserver.kind import Kind
from podium_cluster.apiserver.store.collection import ObjectChange, Stored
from podium_cluster.apiserver.writes.delete import FOREGROUND, ORPHAN
from podium_cluster.controllers.context import ControllerContext, key_of
from podium_cluster.controllers.pods import Key, PodView, PodViewMeta, View
from podium_cluster.controllers.taint_eviction import mark_disrupted


class _Owned(View, frozen=True, kw_only=True):
    metadata: PodViewMeta = PodViewMeta()


class _Address(msgspec.Struct, frozen=True):
    kind: Kind
    namespace: str
    name: str


class GarbageCollector:
    """Knows of each owner's dependents by uid; keys in its lanes are uids."""

    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._addresses: dict[str, _Address] = {}
        self._owners: dict[str, tuple[str, ...]] = {}
        self._dependents: dict[str, dict[str, None]] = {}
        self._dependent_lane = context.lane("GarbageDependent", self._sync_dependent)
        self._owner_lane = context.lane("GarbageOwner", self._sync_owner)
        context.watch_everything(self._changed)

    def _changed(self, change: ObjectChange) -> None:
        stored = change.new
        uid = stored.uid
        if change.type == "DELETED":
            self._note_owners(uid, ())
            self._addresses.pop(uid, None)
            for dependent in self._dependents.get(uid, ()):
                self._dependent_lane.add((dependent, ""))
            return
        owned = b'"ownerReferences"' in stored.raw
        if not owned and uid not in self._owners and b'"deletionTimestamp"' not in stored.raw:
            return
        meta = decode_json(_Owned, stored.raw).metadata
        self._note_owners(uid, tuple(owner.uid for owner in meta.owner_references))
        if owned or meta.deletion_timestamp:
            self._addresses[uid] = _Address(stored.kind, stored.namespace, stored.name)
        if owned and (change.old is None or self._has_new_owner(change.old, meta)):
            self._dependent_lane.add((uid, ""))
        if meta.deletion_timestamp and (FOREGROUND in meta.finalizers or ORPHAN in meta.finalizers):
            self._owner_lane.add((uid, ""))

    def _has_new_owner(self, old: Stored, meta: PodViewMeta) -> bool:
        before = {owner.uid for owner in decode_json(_Owned, old.raw).metadata.owner_references}
        return any(owner.uid not in before for owner in meta.owner_references)

    def _note_owners(self, uid: str, owners: tuple[str, ...]) -> None:
        before = self._owners.get(uid, ())
        for owner in before:
            if owner not in owners:
                dependents = self._dependents.get(owner, {})
                dependents.pop(uid, None)
                if not dependents:
                    self._dependents.pop(owner, None)
                if owner in self._addresses:  # it may have waited for this one
                    self._owner_lane.add((owner, ""))
        for owner in owners:
            self._dependents.setdefault(owner, {})[uid] = None
        if owners:
            self._owners[uid] = owners
        else:
            self._owners.pop(uid, None)

    def _sync_dependent(self, key: Key) -> None:
        uid = key[0]
        obj, address = self._object(uid)
        if obj is None or address is None:
            return
        meta = decode_json(_Owned, msgspec.json.encode(obj)).metadata
        if meta.deletion_timestamp and FOREGROUND not in meta.finalizers:
            return
        found = [(owner, self._owner(owner, address.namespace)) for owner in meta.owner_references]
        if any(state is None for _, state in found):
            return  # of a kind that is not served: whether it is there cannot be said
        gone = {owner.uid for owner, state in found if state == "gone"}
        waiting = {owner.uid for owner, state in found if state == "waiting"}
        solid = len(found) - len(gone) - len(waiting)
        if solid and (gone or waiting):
            remaining = [each for each in obj["metadata"]["ownerReferences"] if each["uid"] not in gone | waiting]
            obj["metadata"]["ownerReferences"] = remaining
            self._context.api.update(address.kind, obj)
        elif not solid and found and not meta.deletion_timestamp:
            in_foreground = bool(waiting) and bool(self._dependents.get(uid))
            self._delete(address, uid, "Foreground" if in_foreground else _policy(meta))

    def _owner(self, owner: OwnerReference, namespace: str) -> str | None:
        """Whether the owner is there ("solid"), gone, or waiting for its dependents to go; None: unknown."""
        kind = self._context.api.kinds.by_kind(owner.api_version, owner.kind)
        if kind is None:
            return None
        stored = self._context.api.store.get(kind, namespace if kind.namespaced else "", owner.name)
        if stored is None or stored.uid != owner.uid:
            return "gone"
        if b'"deletionTimestamp"' not in stored.raw:
            return "solid"
        meta = decode_json(_Owned, stored.raw).metadata
        return "waiting" if meta.deletion_timestamp and FOREGROUND in meta.finalizers else "solid"

    def _sync_owner(self, key: Key) -> None:
        uid = key[0]
        obj, address = self._object(uid)
        if obj is None or address is None or "deletionTimestamp" not in obj["metadata"]:
            return
        finalizers = obj["metadata"].get("finalizers") or ()
        if ORPHAN in finalizers:
            for dependent in list(self._dependents.get(uid, ())):
                self._orphan(dependent, uid)
            self._without_finalizer(address, obj, ORPHAN)
        elif FOREGROUND in finalizers:
            dependents = list(self._dependents.get(uid, ()))
            for dependent in dependents:
                self._dependent_lane.add((dependent, ""))
            if not any(self._blocks(dependent, uid) for dependent in dependents):
                self._without_finalizer(address, obj, FOREGROUND)

    def _blocks(self, dependent: str, owner: str) -> bool:
        obj, _ = self._object(dependent)
        references = (obj["metadata"].get("ownerReferences") or ()) if obj is not None else ()
        return any(each["uid"] == owner and each.get("blockOwnerDeletion") for each in references)

    def _orphan(self, dependent: str, owner: str) -> None:
        obj, address = self._object(dependent)
        if obj is not None and address is not None:
            remaining = [each for each in obj["metadata"].get("ownerReferences") or () if each["uid"] != owner]
            obj["metadata"]["ownerReferences"] = remaining
            if not remaining:
                del obj["metadata"]["ownerReferences"]
            self._context.api.update(address.kind, obj)

    def _without_finalizer(self, address: _Address, obj: JsonObject, finalizer: str) -> None:
        obj["metadata"]["finalizers"] = [each for each in obj["metadata"]["finalizers"] if each != finalizer]
        if not obj["metadata"]["finalizers"]:
            del obj["metadata"]["finalizers"]
        self._context.api.update(address.kind, obj)

    def _delete(self, address: _Address, uid: str, propagation: str) -> None:
        try:
            self._context.api.delete(address.kind, address.namespace, address.name, propagation=propagation, uid=uid)
        except StatusError as error:
            if error.code not in (404, 409):
                raise

    def _object(self, uid: str) -> tuple[JsonObject | None, _Address | None]:
        address = self._addresses.get(uid)
        stored = (
            self._context.api.store.get(address.kind, address.namespace, address.name) if address is not None else None
        )
        if stored is None or stored.uid != uid:
            return None, address
        return stored.decode(), address


def _policy(meta: PodViewMeta) -> str:
    if ORPHAN in meta.finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND in meta.finalizers else "Background"


CHECK_SECONDS = 20.0
QUARANTINE_SECONDS = 40.0
FINISHED_LIMIT = 12_500


class PodGarbage:
    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._lane = context.lane("PodGarbage", self.sync)
        self._check = context.lane("PodGarbageCheck", self._look_at_all)
        self._checking = False
        context.watch_nodes(self._node_changed)
        context.watch_pods(self._pod_changed)

    def sync(self, key: Key) -> None:
        pod = self._context.pods.all.get(key)
        if pod is None or not pod.spec.node_name or pod.spec.node_name in self._context.nodes:
            return
        if not pod.finished:
            mark_disrupted(self._context, key, "DeletionByPodGC", "PodGC: node no longer exists", phase="Failed")
        self._context.delete("Pod", *key, grace_seconds=0)

    def _look_at_all(self, key: Key) -> None:
        finished = [pod for pod in self._context.pods.all.values() if pod.finished and not pod.terminating]
        finished.sort(key=lambda pod: (pod.metadata.creation_timestamp or "", pod.name))
        for pod in finished[: max(0, len(finished) - FINISHED_LIMIT)]:
            self._context.delete("Pod", *pod.key, grace_seconds=0)
        for pod in list(self._context.pods.all.values()):
            if pod.terminating and not pod.spec.node_name:
                self._context.delete("Pod", *pod.key, grace_seconds=0)
        self._check.add_after(key, CHECK_SECONDS)

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        if new is None and old is not None:
            for pod in self._context.pods.on_node(old.name):
                self._lane.add_after(pod.key, QUARANTINE_SECONDS)

    def _pod_changed(self, old: PodView | None, new: PodView | None) -> None:
        if not self._checking:
            self._checking = True
            self._check.add(("", ""))
        if new is None or not new.spec.node_name or (old is not None and old.spec.node_name):
            return
        if new.spec.node_name not in self._context.nodes:
            self._lane.add_after(new.key, QUARANTINE_SECONDS)


LIFETIME = 3600.0
_EVENT_CHECK_SECONDS = 60.0


class EventExpiry:
    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._written: dict[Key, float] = {}
        """When each event was last written, the oldest first."""
        self._lane = context.lane("EventExpiry", self._look)
        context.watch("Event", self._changed)

    def _look(self, key: Key) -> None:
        while self._written:
            event, written = next(iter(self._written.items()))
            if written + LIFETIME > self._context.now():
                break
            self._context.delete("Event", *event)
            self._written.pop(event, None)
        if self._written:
            self._lane.add_after(key, _EVENT_CHECK_SECONDS)

    def _changed(self, change: ObjectChange) -> None:
        self._written.pop(key_of(change), None)
        if change.type == "DELETED":
            return
        if not self._written:
            self._lane.add_after(("", ""), _EVENT_CHECK_SECONDS)
        self._written[key_of(change)] = self._context.now()


BURST = 200
WAIT_SECONDS = 0.25
"""How long until what is still there (pods that take their time) is looked at again."""
FINALIZER = "kubernetes"


class Namespaces:
    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._lane = context.lane("Namespace", self.sync)
        context.watch("Namespace", self._changed)

    def sync(self, key: Key) -> None:
        namespace = self._context.get("Namespace", "", key[1])
        if namespace is None or "deletionTimestamp" not in namespace["metadata"]:
            return
        left = self._empty(key[1])
        if left:
            self._lane.add_after(key, WAIT_SECONDS if left < BURST else 0.001)
            return
        finalizers = (namespace.get("spec") or {}).get("finalizers") or []
        namespace["spec"] = {"finalizers": [each for each in finalizers if each != FINALIZER]}
        self._context.api.update(self._context.kind("Namespace"), namespace, subresource="finalize")

    def _empty(self, name: str) -> int:
        """Deletes what is in the namespace, a good deal at a time; returns how much was seen."""
        api, seen = self._context.api, 0
        for kind in sorted({k.stored_in: k for k in api.kinds if k.namespaced}.values(), key=lambda k: k.stored_in):
            for stored in api.store.items(kind, name):
                seen += 1
                if seen > BURST:
                    return seen
                self._delete(stored.kind, name, stored.name, b'"deletionTimestamp"' in stored.raw)
        return seen

    def _delete(self, kind: Kind, namespace: str, name: str, marked: bool) -> None:
        if marked:
            return
        try:
            self._context.api.delete(kind, namespace, name, propagation="Background")
        except StatusError as error:
            if error.code not in (404, 409):
                raise

    def _changed(self, change: ObjectChange) -> None:
        if change.type != "DELETED":
            self._lane.add(key_of(change))
