"""Namespaces that are deleted: everything in them goes first, then the finalizer, and with it the namespace."""

from __future__ import annotations

from podium_cluster.apiserver.errors import StatusError
from podium_cluster.apiserver.kind import Kind
from podium_cluster.apiserver.store.collection import ObjectChange
from podium_cluster.controllers.context import ControllerContext, key_of
from podium_cluster.controllers.pods import Key

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
