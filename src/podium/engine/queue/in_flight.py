"""Records what happens while pods are being scheduled.

A pod that is being tried is in no queue, so an event that could help it would pass it by. Events are therefore kept
while any pod is in flight, and a pod that fails is shown those that came after it was popped. An event is let go as
soon as no pod is left that was popped before it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, NamedTuple

from podium.engine.queue.queueing_hints import Listeners
from podium.kube import Pod


class Recorded(NamedTuple):
    """An event with the object it was about."""

    listeners: Listeners
    before: Any
    after: Any


class InFlight:
    """Pods being scheduled, oldest first, and the events since the oldest was popped.

    Events are numbered as they come. Each pod remembers the number the next event would have got when it was popped.
    """

    def __init__(self) -> None:
        self._started: OrderedDict[str, tuple[int, Pod]] = OrderedDict()
        self._events: list[Recorded] = []
        self._first = 0
        """The number of the first event kept."""

    def start(self, pod: Pod) -> bool:
        """Note a popped pod; False when one with its UID is in flight already."""
        uid = pod.uid
        if uid in self._started:
            return False
        self._started[uid] = (self._first + len(self._events), pod)
        return True

    def record(self, listeners: Listeners, before: Any, after: Any) -> None:
        if self._started:
            self._events.append(Recorded(listeners, before, after))

    def since(self, uid: str) -> Sequence[Recorded] | None:
        """The events since the pod was popped; None when it is not in flight."""
        started = self._started.get(uid)
        return None if started is None else self._events[started[0] - self._first :]

    def finish(self, uid: str) -> None:
        """The pod is placed or back in a queue: forget it, and the events only it had to see."""
        if self._started.pop(uid, None) is None or not self._events:
            return
        needed = next(iter(self._started.values()))[0] if self._started else self._first + len(self._events)
        del self._events[: needed - self._first]
        self._first = needed

    def pods(self) -> list[Pod]:
        """The pods in flight, as they were when popped."""
        return [pod for _, pod in self._started.values()]

    def events(self) -> Sequence[Recorded]:
        return tuple(self._events)

    def __contains__(self, uid: str) -> bool:
        return uid in self._started

    def __len__(self) -> int:
        return len(self._started)
