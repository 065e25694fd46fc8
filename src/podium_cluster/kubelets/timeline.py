"""Runs planned actions at their time: one heap, one task.

Fifty thousand running pods are fifty thousand entries here and a single timer of the loop. Moments are the clock's, so
that a clock and a loop in virtual time agree.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
from collections.abc import Callable

from podium.framework.clock import Clock
from podium_cluster.apiserver.errors import StatusError, StorageError

logger = logging.getLogger(__name__)

BATCH = 32
"""How much is done before others get their turn."""

RETRY = 5.0
"""Seconds after which what could not be stored is tried again."""

Action = Callable[[], None]


class Timeline:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[float, int, Action]] = []
        self._number = 0
        self._wakeup = asyncio.Event()

    def after(self, seconds: float, action: Action) -> None:
        """Of what falls due at the same moment, the first to be planned comes first."""
        self._number += 1
        heapq.heappush(self._heap, (self._clock.now() + seconds, self._number, action))
        if self._heap[0][1] == self._number:
            self._wakeup.set()

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            if self._do_batch():
                await asyncio.sleep(0)
                continue
            self._wakeup.clear()
            timer = None
            if self._heap:
                timer = loop.call_later(max(0.0, self._heap[0][0] - self._clock.now()), self._wakeup.set)
            try:
                await self._wakeup.wait()
            finally:
                if timer is not None:
                    timer.cancel()

    def _do_batch(self) -> bool:
        """Does what is due, up to BATCH; whether there may be more."""
        for _ in range(BATCH):
            if not self._heap or self._heap[0][0] > self._clock.now():
                return False
            action = heapq.heappop(self._heap)[2]
            try:
                action()
            except StorageError:
                self.after(RETRY, action)
            except StatusError as error:
                logger.debug("a node agent was refused: %s", error)
            except Exception:  # a mistake in a node agent must not stop the other nodes
                logger.exception("a node agent could not do its work")
        return True
