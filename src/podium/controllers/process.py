"""Runs controllers from start to end: watch, lead, reconcile, stop.

Collections are watched while the process still waits to lead. Only a leader writes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from podium.controllers.reconcile import Reconciler
from podium.controllers.watches import SharedWatch
from podium.serving.events.recorder import EventRecorder
from podium.serving.log import LOG
from podium.serving.process_loop import ProcessLoop, cancel
from podium.serving.process_metrics import ProcessMetrics

LAST_WRITES = 3.0
"""Seconds for events that have not been written when the process is stopped."""


@dataclass(frozen=True)
class ControllerProcess:
    """The parts of one process of controllers."""

    reconcilers: Sequence[Reconciler]
    watches: Mapping[str, SharedWatch]
    recorder: EventRecorder
    loop: ProcessLoop
    metrics: ProcessMetrics

    def not_synced(self) -> str | None:
        """The readiness check `informer-sync`; a resource that is not installed keeps no process from being ready."""
        needed = [each for each in self.watches.values() if each.needed.is_set()]
        missing = [each.resource.name for each in needed if not each.settled.is_set()]
        return f"not listed yet: {', '.join(missing)}" if missing else None

    async def run(self, stop: asyncio.Event) -> int:
        """Keep custom resources up to date until `stop` is set (0) or until the lease is lost (1)."""
        working: list[asyncio.Task[Any]] = []

        def work() -> None:
            if self.loop.election is not None:
                LOG.info("leading: controllers %s", ", ".join(each.controller.name for each in self.reconcilers))
            working.extend(self.loop.start(reconciler.work()) for reconciler in self.reconcilers)

        async def finish() -> None:
            await cancel(working)
            await self.recorder.drain(LAST_WRITES)

        beside = [self.recorder.run(), *(watch.run() for watch in self.watches.values())]
        return await self.loop.run(stop, beside, work, finish)
