"""Remembers what lately happened to pods: which queue each entered and why, why attempts failed, where pods were bound.

Only a dashboard reads it, so only a process with one has it. It is bounded: the oldest entries go first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from podium.framework.clock import Clock
from podium.framework.queued import QueuedPod
from podium.framework.waiting import WaitingPod
from podium.kube import Pod
from podium.kube.printable import shortened

MOST_ENTRIES: Final = 100_000
MOST_TEXTS: Final = 2_000
"""Messages that are kept once for all entries: many pods fail for the same reason."""
LONGEST_TEXT: Final = 1_000

QUEUED, HELD, BOUND, FAILED, NOMINATED = "queued", "held", "bound", "failed", "nominated"
"""The kinds of entries."""


class HistoryEntry(NamedTuple):
    """One thing that happened to a pod."""

    number: int
    """Grows by one with every entry."""
    time: float
    pod: str
    kind: str
    where: str
    """The queue that it entered, or its node."""
    cause: str = ""
    """The event that moved it ("AssignedPodDelete"), or the message of an attempt that failed."""
    object: str = ""
    """The object of the event: "namespace/name"."""
    attempts: int = 0


class PodHistory:
    """The newest entries, the oldest first."""

    def __init__(self, clock: Clock, most: int = MOST_ENTRIES) -> None:
        self._clock = clock
        self._entries: deque[HistoryEntry] = deque(maxlen=most)
        self._texts: dict[str, str] = {}
        self.written = 0
        """How many entries there have been."""
        self.bound = 0
        """How many of them were bindings."""
        self.failed = 0

    def moved(self, queued: QueuedPod, queue: str, event: str, cause: Any) -> None:
        """A pod entered a queue because of an event on an object, where there is one."""
        metadata = getattr(cause, "metadata", None)
        about = "" if metadata is None else "/".join(filter(None, (metadata.namespace, metadata.name)))
        self._add(queued.pod, QUEUED, queue, event, "" if about == queued.key else about, queued.attempts)

    def held_at_permit(self, waiting: WaitingPod) -> None:
        self._add(waiting.pod, HELD, waiting.node_name, ", ".join(sorted(waiting.pending)))

    def scheduled(self, pod: Pod, node_name: str) -> None:
        self.bound += 1
        self._add(pod, BOUND, node_name)

    def attempt_failed(self, pod: Pod, reason: str, message: str, nominated: str) -> None:
        self.failed += 1
        self._add(pod, FAILED, reason, message)
        if nominated:
            self._add(pod, NOMINATED, nominated)

    def since(self, number: int) -> list[HistoryEntry]:
        """The entries after that one that are still here."""
        missed = self.written - number
        if missed <= 0:
            return []
        if missed >= len(self._entries):
            return list(self._entries)
        newest = reversed(self._entries)
        return [next(newest) for _ in range(missed)][::-1]

    def __iter__(self) -> Iterator[HistoryEntry]:
        return iter(list(self._entries))

    def _add(self, pod: Pod, kind: str, where: str, cause: str = "", about: str = "", attempts: int = 0) -> None:
        self.written += 1
        entry = HistoryEntry(self.written, self._clock.now(), pod.key, kind, where, self._text(cause), about, attempts)
        self._entries.append(entry)

    def _text(self, text: str) -> str:
        text = shortened(text, LONGEST_TEXT)
        known = self._texts.get(text)
        if known is None:
            if len(self._texts) >= MOST_TEXTS:
                self._texts.clear()
            known = self._texts[text] = text
        return known
