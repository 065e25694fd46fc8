"""Volumes of pods that wait for a node they are nominated to.

Filters are tried on that node as if these pods stood there, so a volume of theirs is in use there already. Worked out
per node, and again when its nominations change, or a claim or volume that was looked at on the way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container
from contextlib import suppress

from podium.cluster.attached import UnusableVolumeError, claim_keys
from podium.framework import Handle

Key = tuple[str, str]
"""A claim or a volume: which of the two, and its key."""


class PromisedVolumes:
    def __init__(self, handle: Handle) -> None:
        self._nominator = handle.nominator
        self._cluster = handle.cluster
        self._cursor = handle.nominator.changes.cursor()
        self._uses: Counter[str] = Counter()
        self._volumes_on: dict[str, list[str]] = {}
        self._seen_on: dict[str, list[Key]] = {}
        self._nodes_by: dict[Key, dict[str, None]] = {}
        self._stale: dict[str, None] = {}
        objects = handle.cluster.objects
        objects.claims.follow(lambda key, _before, _after: self._note(("claim", key)))
        objects.volumes.follow(lambda key, _before, _after: self._note(("volume", key)))
        objects.storage_classes.follow(lambda _key, _before, _after: self._stale.update(dict.fromkeys(self._seen_on)))

    def refreshed(self) -> Container[str]:
        moved = self._cursor.read()
        if moved is None:
            moved = [*self._seen_on, *self._nominator.nodes()]
        if moved or self._stale:
            for name in dict.fromkeys((*moved, *self._stale)):
                self._forget(name)
                self._look_at(name)
            self._stale.clear()
        return self._uses

    def _note(self, key: Key) -> None:
        nodes = self._nodes_by.get(key)
        if nodes is not None:
            self._stale.update(nodes)

    def _forget(self, name: str) -> None:
        for volume in self._volumes_on.pop(name, ()):
            self._uses[volume] -= 1
            if not self._uses[volume]:
                del self._uses[volume]
        for key in self._seen_on.pop(name, ()):
            del self._nodes_by[key][name]
            if not self._nodes_by[key]:
                del self._nodes_by[key]

    def _look_at(self, name: str) -> None:
        volumes: list[str] = []
        seen: dict[Key, None] = {}
        for pod in self._nominator.on(name):
            with suppress(UnusableVolumeError):
                volumes += self._cluster.attached.volumes_of(pod, placed=True)
            for claim_key in claim_keys(pod):
                seen["claim", claim_key] = None
                claim = self._cluster.objects.claims.get(claim_key)
                if claim is not None:
                    seen["volume", claim.spec.volume_name] = None
        if seen or volumes:
            self._volumes_on[name], self._seen_on[name] = volumes, list(seen)
            self._uses.update(volumes)
            for key in seen:
                self._nodes_by.setdefault(key, {})[name] = None
