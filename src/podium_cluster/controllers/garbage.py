"""Collects garbage: deletes objects whose owners are gone.

An object whose owners are all gone is deleted; one that has an owner left only loses its references to those that are
gone. An owner deleted in the foreground stays until those dependents that block it are gone, and they are deleted in
the foreground as well; one deleted with "orphan" stays until its dependents no longer refer to it.
"""

from __future__ import annotations

import msgspec

from podium.kube.decode import decode_json
from podium.kube.json_object import JsonObject
from podium.kube.meta import OwnerReference
from podium_cluster.apiserver.errors import StatusError
from podium_cluster.apiserver.kind import Kind
from podium_cluster.apiserver.store.collection import ObjectChange, Stored
from podium_cluster.apiserver.writes.delete import FOREGROUND, ORPHAN
from podium_cluster.controllers.context import ControllerContext
from podium_cluster.controllers.pods import Key, PodViewMeta, View


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
