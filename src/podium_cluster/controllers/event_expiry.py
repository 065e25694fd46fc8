"""Deletes events an hour after they were last written: what kube-apiserver has its storage do."""

from __future__ import annotations

from podium_cluster.apiserver.store.collection import ObjectChange
from podium_cluster.controllers.context import ControllerContext, key_of
from podium_cluster.controllers.pods import Key

LIFETIME = 3600.0
CHECK_SECONDS = 60.0


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
            self._lane.add_after(key, CHECK_SECONDS)

    def _changed(self, change: ObjectChange) -> None:
        self._written.pop(key_of(change), None)
        if change.type == "DELETED":
            return
        if not self._written:
            self._lane.add_after(("", ""), CHECK_SECONDS)
        self._written[key_of(change)] = self._context.now()
