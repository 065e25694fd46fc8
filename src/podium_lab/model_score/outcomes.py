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
from typing import Any, Final

import msgspec

from podium.kube.meta import format_time
from podium_lab.model_score.channel import Channel, ServerAccess
from podium_lab.model_score.podium_protocol import JSON
from podium_lab.model_score.question import ModelError

MOST_WAITING: Final = 10_000
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
