"""Runs controllers from start to end: watch, lead, reconcile, stop.

Collections are watched while the process still waits to lead, so that a new leader starts at once. Only a leader
writes; its writes pass a guard that asks at the last moment whether the lease still holds. When the lease is lost the
process ends with 1, and its supervisor starts it again. A signal to stop hands the lease over and ends it with 0.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any

from podium.client import Client
from podium.controllers.reconcile import Reconciler
from podium.controllers.watches import SharedWatch
from podium.serving.election.election import Election, LeadershipLost
from podium.serving.events.recorder import EventRecorder
from podium.serving.first_ended import first_ended
from podium.serving.log import LOG
from podium.serving.process_metrics import ProcessMetrics

LAST_WRITES = 3.0
"""Seconds for events that have not been written when the process is stopped."""
FINE, LOST = 0, 1


class ControllerProcess:
    """The parts of one process of controllers."""

    def __init__(
        self,
        reconcilers: Sequence[Reconciler],
        watches: Mapping[str, SharedWatch],
        client: Client,
        recorder: EventRecorder,
        election: Election | None,
        metrics: ProcessMetrics,
    ) -> None:
        self.election = election
        self.metrics = metrics
        self.reconcilers = reconcilers
        self._watches = watches
        self._client = client
        self._recorder = recorder
        self._stopping = False

    def leads(self) -> bool:
        return self.election is None or self.election.leading()

    def shutting_down(self) -> str | None:
        """The readiness check `shutdown`."""
        return "process is shutting down" if self._stopping else None

    def not_synced(self) -> str | None:
        """The readiness check `informer-sync`; a resource that is not installed keeps no process from being ready."""
        needed = [each for each in self._watches.values() if each.needed.is_set()]
        missing = [each.resource.name for each in needed if not each.settled.is_set()]
        return f"not listed yet: {', '.join(missing)}" if missing else None

    async def run(self, stop: asyncio.Event) -> int:
        """Keep custom resources up to date until `stop` is set (0) or until the lease is lost (1)."""
        tasks: list[asyncio.Task[Any]] = []

        def start(work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
            tasks.append(asyncio.create_task(work))
            return tasks[-1]

        start(stop.wait())
        start(self._recorder.run())
        for watch in self._watches.values():
            start(watch.run())
        try:
            if self.election is not None:
                LOG.info("trying to acquire %s, as %s", self.election.where, self.election.identity)
                leading = start(self.election.acquire())
                await first_ended(tasks)
                if not leading.done():
                    return FINE
                tasks.remove(leading)
                self._client.guard = self.election.guard
                start(self.election.keep())
                LOG.info("leading: controllers %s", ", ".join(each.controller.name for each in self.reconcilers))
            working = [start(reconciler.work()) for reconciler in self.reconcilers]
            try:
                await first_ended(tasks)
            except LeadershipLost as loss:
                LOG.error("%s; ending, so that what starts next begins from the API server alone", loss)
                return LOST
            LOG.info("stopping")
            self._stopping = True
            await _cancel(working)
            await self._recorder.drain(LAST_WRITES)
            if self.election is not None:
                await self.election.release()
            return FINE
        finally:
            await _cancel(tasks)


async def _cancel(tasks: Sequence[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
