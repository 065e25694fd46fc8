"""Tells an agent what became of its decisions: bound, failed, running, gone.

    POST /v1/outcome   {decisionId, outcome, pod, node, time, reason}

A thread delivers them in the order in which they happened, each at least once: one that isn't confirmed is sent again
until it is. At most MOST_WAITING wait; then the oldest are dropped and counted. No decision ever waits for this. Times
are those of the scheduler's clock, in RFC 3339; in a simulation they are virtual.
"""

from __future__ import annotations

import atexit
import threading
import time
from collections import deque
from typing import Any, Final, NamedTuple

import msgspec

from podium.framework.clock import Clock
from podium.kube import Pod
from podium.kube.meta import format_time
from podium_lab.model_score.channel import Channel, ServerAccess
from podium_lab.model_score.podium_protocol import JSON
from podium_lab.model_score.question import ModelError

MOST_WAITING: Final = 10_000
MOST_FOLLOWED: Final = 200_000
"""Pods whose fate is followed; then the oldest are let go of."""
SECONDS: Final = 5.0
"""How long one delivery may take."""
RETRY: Final = 1.0
SLOWEST_RETRY: Final = 30.0
AT_THE_END: Final = 1.0
"""Seconds that the process waits at its end for what is still to be sent."""


class Outcomes:
    """What is still to be sent. The thread starts with the first outcome."""

    def __init__(self, access: ServerAccess) -> None:
        self._channel = Channel(access, lambda _exchange: None)
        self._waiting: deque[bytes] = deque()
        self._lock = threading.Lock()
        self._more = threading.Event()
        self._thread: threading.Thread | None = None
        self.sent = 0
        self.dropped = 0

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def add(self, decision: str, outcome: str, pod: str, node: str, now: float, reason: str = "") -> None:
        """Tell later that something happened at a time."""
        message: dict[str, Any] = {
            "decisionId": decision,
            "outcome": outcome,
            "pod": pod,
            "time": format_time(now),
        }
        if node:
            message["node"] = node
        if reason:
            message["reason"] = reason
        with self._lock:
            if len(self._waiting) >= MOST_WAITING:
                self._waiting.popleft()
                self.dropped += 1
            self._waiting.append(msgspec.json.encode(message))
        if self._thread is None:
            self._thread = threading.Thread(target=self._deliver, name="model-outcomes", daemon=True)
            self._thread.start()
            atexit.register(self.flush, AT_THE_END)
        self._more.set()

    def flush(self, seconds: float) -> bool:
        """Wait until all is sent, but no longer than this; whether it is."""
        deadline = time.monotonic() + seconds
        while self._waiting and time.monotonic() < deadline:
            time.sleep(0.01)
        return not self._waiting

    def _deliver(self) -> None:
        pause = RETRY
        while True:
            self._more.wait()
            self._more.clear()
            while self._waiting:
                with self._lock:
                    first = self._waiting[0]
                try:
                    self._channel.post("/v1/outcome", first, JSON, time.monotonic() + SECONDS, 1 << 16)
                except ModelError:
                    time.sleep(pause)
                    pause = min(2 * pause, SLOWEST_RETRY)
                    continue
                pause = RETRY
                with self._lock:
                    if self._waiting and self._waiting[0] is first:  # it may have been dropped meanwhile
                        self._waiting.popleft()
                self.sent += 1


class _Fate(NamedTuple):
    """A decision, and the last outcome that was sent of it; empty: none yet."""

    decision: str
    outcome: str


class DecisionFates:
    """What became of the pods that a model decided about; each outcome is sent once it is seen."""

    def __init__(self, outcomes: Outcomes, clock: Clock) -> None:
        self._outcomes = outcomes
        self._clock = clock
        self._by_uid: dict[str, _Fate] = {}

    def decided(self, pod: Pod, decision: str) -> None:
        """A model decided about a pod; a decision before, of which nothing came, has failed."""
        before = self._by_uid.pop(pod.uid, None)
        if before is not None and not before.outcome:
            self._send(before, "failed", pod, "", "it was decided again")
        if len(self._by_uid) >= MOST_FOLLOWED:
            del self._by_uid[next(iter(self._by_uid))]
        self._by_uid[pod.uid] = _Fate(decision, "")

    def failed(self, pod: Pod, node_name: str) -> None:
        """A pod was not bound to its node."""
        fate = self._by_uid.pop(pod.uid, None)
        if fate is not None:
            self._send(fate, "failed", pod, node_name)

    def observe(self, before: Any, after: Any) -> None:
        """A pod came, changed or went."""
        pod = after if isinstance(after, Pod) else before
        fate = self._by_uid.get(pod.uid) if isinstance(pod, Pod) else None
        if fate is None or not isinstance(pod, Pod):
            return
        if after is None or pod.finished:
            del self._by_uid[pod.uid]
            self._send(fate, "gone", pod, pod.node_name, pod.status.phase)
            return
        if pod.node_name and not fate.outcome:
            fate = self._by_uid[pod.uid] = _Fate(fate.decision, "bound")
            self._send(fate, "bound", pod, pod.node_name)
        if pod.status.phase == "Running" and fate.outcome == "bound":
            self._by_uid[pod.uid] = _Fate(fate.decision, "running")
            self._send(fate, "running", pod, pod.node_name)

    def _send(self, fate: _Fate, outcome: str, pod: Pod, node_name: str, reason: str = "") -> None:
        self._outcomes.add(fate.decision, outcome, pod.key, node_name, self._clock.now(), reason)
