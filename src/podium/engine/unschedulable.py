"""Pods that wait for something to change.

There may be tens of thousands of them while thousands of events come every second, nearly all of which concern none
of them. So they are filed by what they wait for: a rejected pod under each plugin that rejected it, a gated pod under
the plugin that gates it, and an event looks only under the plugins that registered it. They are also kept by age, to
find those that have waited too long.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from podium.engine.heap import KeyedHeap
from podium.framework.queued import QueuedPod

_Folder = dict[str, QueuedPod]


class _Filing(NamedTuple):
    """Where a pod was filed: its sets of plugins may change before it is taken out."""

    queued: QueuedPod
    folders: tuple[_Folder, ...]
    gated: bool


class UnschedulablePods:
    def __init__(self) -> None:
        self._filings: dict[str, _Filing] = {}
        self._rejected_by: dict[str, _Folder] = {}
        self._gated_by: dict[str, _Folder] = {}
        self._by_age = KeyedHeap(last_tried)
        self.gated = 0
        """How many of the pods are gated."""

    def put(self, queued: QueuedPod) -> None:
        """File a pod; one that is here already is filed anew."""
        self.remove(queued.key)
        if queued.gating_plugin:
            folders: tuple[_Folder, ...] = (self._gated_by.setdefault(queued.gating_plugin, {}),)
        else:
            rejectors = queued.unschedulable_plugins | queued.pending_plugins
            folders = tuple(self._rejected_by.setdefault(plugin, {}) for plugin in rejectors)
        for folder in folders:
            folder[queued.key] = queued
        gated = bool(queued.gating_plugin)
        self._filings[queued.key] = _Filing(queued, folders, gated)
        self._by_age.push(queued)
        self.gated += gated

    def remove(self, key: str) -> None:
        filing = self._filings.pop(key, None)
        if filing is not None:
            for folder in filing.folders:
                del folder[key]
            self._by_age.remove(key)
            self.gated -= filing.gated

    def waiting_for(self, plugins: Iterable[str]) -> list[QueuedPod]:
        """The pods that one of the plugins rejected or gates, each once."""
        folders: list[_Folder] = []
        if self._filings:
            for plugin in plugins:
                folders += filter(None, (self._rejected_by.get(plugin), self._gated_by.get(plugin)))
        if len(folders) == 1:
            return list(folders[0].values())
        found: _Folder = {}
        for folder in folders:
            found.update(folder)
        return list(found.values())

    def older_than(self, seconds: float, now: float) -> list[QueuedPod]:
        """The pods last tried more than so many seconds ago, longest ago first; they stay."""
        found: list[QueuedPod] = []
        while (queued := self._by_age.peek()) is not None and now - last_tried(queued) > seconds:
            self._by_age.pop()
            found.append(queued)
        for queued in found:
            self._by_age.push(queued)
        return found

    def oldest(self) -> float | None:
        """When the pod that has waited longest was last tried."""
        queued = self._by_age.peek()
        return None if queued is None else last_tried(queued)

    def __len__(self) -> int:
        return len(self._filings)

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter([filing.queued for filing in self._filings.values()])


def last_tried(queued: QueuedPod) -> float:
    """A pod that was given another chance for waiting too long waits anew from then."""
    return max(queued.timestamp, queued.flushed_at)
