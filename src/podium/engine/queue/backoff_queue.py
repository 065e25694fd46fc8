"""Holds failed pods before they are tried again, twice as long each time.

    duration   = min(initial × 2^(count − 1), maximum × √members)      (members of a pod group; one pod is 1)
    expiration = ⌊time of the failure + duration⌋           (whole seconds)

where count is the number of errors in a row or, after a rejection, the number of rejections so far. A pod is held
until the second of its expiration is over. Whole seconds make the pods of one second one batch, which leaves in the
order of the active queue.

Rejected pods and pods that failed by an error wait apart: an idle scheduler takes up a rejected pod before its time is
over, but never one whose wait protects the API server. Nor a member of a PodGroup, where these are scheduled: it comes
back whatever happened, so that an idle scheduler would try a group that does not fit without end.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from podium.engine.queue.heap import KeyedHeap, LessHeap, PodHeap, Sorter, sort_key_of
from podium.framework.clock import Clock
from podium.framework.queued import QueuedGroup, QueuedPod

NEVER_WAITED = -math.inf
"""The expiration of a pod that has nothing to wait for."""

_MOST_DOUBLINGS = 62
"""More than any maximum allows; keeps the arithmetic within floats."""


class BackoffQueue:
    def __init__(
        self, sorter: Sorter, clock: Clock, initial: float, maximum: float, *, pod_groups: bool = False
    ) -> None:
        self._pod_groups = pod_groups
        self._clock = clock
        self._initial = initial
        self._maximum = maximum
        self._rejected = self._heap_of_rejected(sorter)
        self._errors = KeyedHeap(self.expiration)

    def _heap_of_rejected(self, sorter: Sorter) -> PodHeap:
        expiration, less, sort_key = self.expiration, sorter.less, sort_key_of(sorter)
        if sort_key is not None:
            return KeyedHeap(lambda queued: (expiration(queued), sort_key(queued)))

        def sooner(a: QueuedPod, b: QueuedPod) -> bool:
            first, second = expiration(a), expiration(b)
            return first < second if first != second else less(a, b)

        return LessHeap(sooner)

    def expiration(self, queued: QueuedPod) -> float:
        """The second in which the pod's wait ends, kept until it fails again."""
        count = queued.consecutive_errors or queued.unschedulable_count
        if count == 0 or self._maximum == 0:
            return NEVER_WAITED
        if queued.backoff_expiration is None:
            maximum = self._maximum * math.sqrt(queued.group_size) if isinstance(queued, QueuedGroup) else self._maximum
            duration = min(self._initial * 2 ** min(count - 1, _MOST_DOUBLINGS), maximum)
            queued.backoff_expiration = float(math.floor(queued.timestamp + duration))
        return queued.backoff_expiration

    def waiting(self, queued: QueuedPod) -> bool:
        """Whether the pod must still be held."""
        return self.expiration(queued) >= math.floor(self._clock.now())

    def add(self, queued: QueuedPod) -> None:
        early = bool(queued.unschedulable_plugins or queued.pending_plugins)
        if self._pod_groups and queued.pod.spec.scheduling_group is not None:
            early = False
        (self._rejected if early else self._errors).push(queued)

    def resort(self, queued: QueuedPod) -> None:
        heap = self._rejected if queued.key in self._rejected else self._errors
        heap.push(queued)

    def remove(self, key: str) -> bool:
        return self._rejected.remove(key) or self._errors.remove(key)

    def pop_early(self) -> QueuedPod | None:
        """The rejected pod whose wait ends first, over or not."""
        return self._rejected.pop()

    def completed(self) -> Iterator[QueuedPod]:
        """The pods whose wait is over; each must be taken out before the next is asked for."""
        for heap in (self._rejected, self._errors):
            while (queued := heap.peek()) is not None and not self.waiting(queued):
                yield queued

    def next_completion(self) -> float | None:
        """When the next wait will be over."""
        heads = [queued for heap in (self._rejected, self._errors) if (queued := heap.peek()) is not None]
        return min((self.expiration(queued) + 1 for queued in heads), default=None)

    @property
    def rejected(self) -> int:
        """How many could be popped early."""
        return len(self._rejected)

    def __len__(self) -> int:
        return len(self._rejected) + len(self._errors)

    def __iter__(self) -> Iterator[QueuedPod]:
        yield from self._rejected
        yield from self._errors
