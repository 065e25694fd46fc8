"""Keeps the queue in order whatever its QueueSort plugin does.

The plugin is asked while a pod is put into the queue or taken out of it, where a failure would lose the pod or stop the
scheduler. So where it fails on two pods, they are compared as PrioritySort does, and what went wrong is reported, once
for each way of failing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from podium.engine.queue.heap import Sorter, sort_key_of
from podium.framework.answers import describe
from podium.framework.queued import QueuedPod

MOST_REPORTED = 100
"""Ways of failing that are reported; one that is different each time would never end."""


def unfailing(sorter: Any, report: Callable[[str], None]) -> Sorter:
    """The plugin as the queue may use it: unchanged if it is trusted to have an answer for any two pods."""
    if sorter.trusted:
        return sorter  # type: ignore[no-any-return]
    return (_Guarded if sort_key_of(sorter) is None else _GuardedKeys)(sorter, report)


class _Guarded:
    def __init__(self, sorter: Any, report: Callable[[str], None]) -> None:
        self._sorter = sorter
        self._report = report
        self._reported: set[str] = set()

    def less(self, a: QueuedPod, b: QueuedPod) -> bool:
        try:
            return bool(self._sorter.less(a, b))
        except Exception as error:  # whatever the plugin raises: the queue keeps an order
            self.failed(error)
            return usual_key(a) < usual_key(b)

    def failed(self, error: Exception) -> None:
        sentence = f'running QueueSort plugin "{self._sorter.name}": {describe(error)}'
        if sentence not in self._reported and len(self._reported) < MOST_REPORTED:
            self._reported.add(sentence)
            self._report(sentence)


class _GuardedKeys(_Guarded):
    def sort_key(self, queued: QueuedPod) -> _Key:
        try:
            return _Key(self._sorter.sort_key(queued), queued, self)
        except Exception as error:  # whatever the plugin raises: the queue keeps an order
            self.failed(error)
            return _Key(_NONE, queued, self)


_NONE = object()
"""The key of a pod for which there is none."""


class _Key:
    """A plugin's key. Pods whose keys do not compare, or that have none, go by the usual order."""

    __slots__ = ("_guard", "_key", "_usual")

    def __init__(self, key: Any, queued: QueuedPod, guard: _Guarded) -> None:
        self._key = key
        self._usual = usual_key(queued)
        self._guard = guard

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Key):
            return NotImplemented
        if self._key is _NONE or other._key is _NONE:
            return self._usual == other._usual
        try:
            return bool(self._key == other._key)
        except Exception as error:  # whatever the comparison of the plugin's keys raises
            self._guard.failed(error)
            return self._usual == other._usual

    __hash__ = None  # type: ignore[assignment]

    def __lt__(self, other: _Key) -> bool:
        if self._key is _NONE or other._key is _NONE:
            return self._usual < other._usual
        try:
            return bool(self._key < other._key)
        except Exception as error:  # whatever the comparison of the plugin's keys raises
            self._guard.failed(error)
            return self._usual < other._usual


def usual_key(queued: QueuedPod) -> tuple[int, float, int]:
    """PrioritySort's order."""
    return -queued.priority, queued.timestamp, queued.sequence
