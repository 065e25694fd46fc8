"""Queues that give up the pod that should go first.

Three kinds, with one outside. `KeyedHeap` sorts by a key taken when the pod is put in: a removed or re-sorted pod
leaves its old entry behind, to be dropped when it surfaces, so every step is a few comparisons of tuples in C.
`DriftingHeap` does the same with keys that move with time. `LessHeap` asks a function which of two pods goes first and
keeps each pod's position, for sorters that have no key.

Pods that sort equally leave in the order of their `sequence`, so that two runs of the same story are the same.
"""

from __future__ import annotations

import functools
import heapq
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from podium.framework.queued import QueuedPod

Less = Callable[[QueuedPod, QueuedPod], bool]
SortKey = Callable[[QueuedPod], Any]

_Entry = tuple[Any, int, int, QueuedPod]
"""(sort key, sequence, number of the entry, pod): no two entries compare as far as the pod."""

MANY_MOVING = 1000
"""Keys that move for which they are taken again one version later."""
_SPARE = 64
"""Left-behind entries are cleared out when they outnumber the others by this many."""


class Sorter(Protocol):
    """The QueueSort plugin. One that also has `sort_key(queued) -> tuple` is asked for that instead, once per pod."""

    def less(self, a: QueuedPod, b: QueuedPod, /) -> bool: ...


class PodHeap(Protocol):
    def push(self, queued: QueuedPod) -> None:
        """Put a pod in; one that is there already is sorted again, or replaced by a newer record of its key."""

    def pop(self) -> QueuedPod | None:
        """Take out the first pod."""

    def peek(self) -> QueuedPod | None:
        """The first pod, left where it is."""

    def remove(self, key: str) -> bool:
        """Take out a pod by its key; whether it was there."""

    def __contains__(self, key: str) -> bool: ...

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[QueuedPod]:
        """All pods, in the order they would leave."""


class KeyedHeap:
    """Smallest key first.

    >>> from podium.kube import ObjectMeta, Pod
    >>> heap = KeyedHeap(lambda queued: -queued.pod.priority)
    >>> heap.push(QueuedPod(Pod(metadata=ObjectMeta(name="a")), now=0.0))
    >>> len(heap), "default/a" in heap
    (1, True)
    """

    def __init__(self, sort_key: SortKey) -> None:
        self._sort_key = sort_key
        self._heap: list[_Entry] = []
        self._current: dict[str, _Entry] = {}
        self._entries = 0

    def push(self, queued: QueuedPod) -> None:
        sort_key = self._sort_key(queued)
        known = self._current.get(queued.key)
        if known is not None and known[0] == sort_key and known[3] is queued:
            return
        self._entries += 1
        entry = (sort_key, queued.sequence, self._entries, queued)
        self._current[queued.key] = entry
        heapq.heappush(self._heap, entry)
        if known is not None:
            self._clear_out()

    def pop(self) -> QueuedPod | None:
        heap, current = self._heap, self._current
        while heap:
            entry = heapq.heappop(heap)
            queued = entry[3]
            if current.get(queued.key) is entry:
                del current[queued.key]
                return queued
        return None

    def peek(self) -> QueuedPod | None:
        heap = self._heap
        while heap:
            entry = heap[0]
            if self._current.get(entry[3].key) is entry:
                return entry[3]
            heapq.heappop(heap)
        return None

    def remove(self, key: str) -> bool:
        if self._current.pop(key, None) is None:
            return False
        self._clear_out()
        return True

    def _clear_out(self) -> None:
        if len(self._heap) > 2 * len(self._current) + _SPARE:
            self._heap = list(self._current.values())
            heapq.heapify(self._heap)

    def __contains__(self, key: str) -> bool:
        return key in self._current

    def __len__(self) -> int:
        return len(self._current)

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter([entry[3] for entry in sorted(self._current.values())])


class LessHeap:
    """First by a comparison. A sorter may read anything of a pod, so nothing of the order is kept but positions."""

    def __init__(self, less: Less) -> None:
        self._less = less
        self._heap: list[QueuedPod] = []
        self._position: dict[str, int] = {}

    def push(self, queued: QueuedPod) -> None:
        position = self._position.get(queued.key)
        if position is None:
            position = len(self._heap)
            self._heap.append(queued)
        self._settle(queued, position)

    def pop(self) -> QueuedPod | None:
        first = self.peek()
        if first is not None:
            self.remove(first.key)
        return first

    def peek(self) -> QueuedPod | None:
        return self._heap[0] if self._heap else None

    def remove(self, key: str) -> bool:
        position = self._position.pop(key, None)
        if position is None:
            return False
        last = self._heap.pop()
        if position < len(self._heap):
            self._settle(last, position)
        return True

    def _settle(self, queued: QueuedPod, position: int) -> None:
        """Find the place of a pod, starting from a position that is free for it: up as far as it goes, then down."""
        heap = self._heap
        while position and self._before(queued, heap[(position - 1) // 2]):
            self._put_at(heap[(position - 1) // 2], position)
            position = (position - 1) // 2
        while (child := 2 * position + 1) < len(heap):
            if child + 1 < len(heap) and self._before(heap[child + 1], heap[child]):
                child += 1
            if not self._before(heap[child], queued):
                break
            self._put_at(heap[child], position)
            position = child
        self._put_at(queued, position)

    def _put_at(self, queued: QueuedPod, position: int) -> None:
        self._heap[position] = queued
        self._position[queued.key] = position

    def _before(self, a: QueuedPod, b: QueuedPod) -> bool:
        return self._less(a, b) or (a.sequence < b.sequence and not self._less(b, a))

    def __contains__(self, key: str) -> bool:
        return key in self._position

    def __len__(self) -> int:
        return len(self._heap)

    def __iter__(self) -> Iterator[QueuedPod]:
        def compare(a: QueuedPod, b: QueuedPod) -> int:
            return -1 if self._before(a, b) else 1

        return iter(sorted(self._heap, key=functools.cmp_to_key(compare)))


class DriftingSorter(Protocol):
    """A QueueSort plugin whose keys move with time."""

    def sort_key(self, queued: QueuedPod, /) -> Any: ...

    def order_version(self) -> int:
        """Keys that move are taken again when this has grown: by one, or by more where there are many of them."""

    def key_moves(self, queued: QueuedPod, /) -> bool:
        """Whether a pod's key is another one after a while."""


class DriftingHeap(KeyedHeap):
    """Smallest key first, where keys move with time: those that do are taken again when time has passed, and the first
    one is looked at once more before it is given up."""

    def __init__(self, sorter: DriftingSorter) -> None:
        super().__init__(sorter.sort_key)
        self._sorter = sorter
        self._sorted_at = 0
        self._moving: dict[str, QueuedPod] = {}

    def push(self, queued: QueuedPod) -> None:
        super().push(queued)
        if self._sorter.key_moves(queued):
            self._moving[queued.key] = queued
        else:
            self._moving.pop(queued.key, None)

    def pop(self) -> QueuedPod | None:
        self._resort()
        first = super().pop()
        for _ in range(len(self._current)):
            following = self.peek()
            if first is None or following is None or first.key not in self._moving:
                break
            if not self._current[following.key][0] < self._sort_key(first):
                break
            self.push(first)
            first = super().pop()
        if first is not None:
            self._moving.pop(first.key, None)
        return first

    def remove(self, key: str) -> bool:
        self._moving.pop(key, None)
        return super().remove(key)

    def _resort(self) -> None:
        version = self._sorter.order_version()
        if 0 <= version - self._sorted_at <= len(self._moving) // MANY_MOVING:
            return
        self._sorted_at = version
        if self._moving:
            current, sort_key = self._current, self._sort_key
            for key, queued in self._moving.items():
                _, sequence, number, _ = current[key]
                current[key] = (sort_key(queued), sequence, number, queued)
            self._heap = list(current.values())
            heapq.heapify(self._heap)


def pod_heap(sorter: Sorter) -> PodHeap:
    """The quicker kind where there is a key."""
    sort_key = sort_key_of(sorter)
    if sort_key is None:
        return LessHeap(sorter.less)
    drifting: Any = sorter
    return DriftingHeap(drifting) if hasattr(sorter, "order_version") else KeyedHeap(sort_key)


def sort_key_of(sorter: Sorter) -> SortKey | None:
    return getattr(sorter, "sort_key", None)
