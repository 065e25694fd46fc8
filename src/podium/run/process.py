"""Runs a scheduler process from start to end: watch, lead, schedule, stop.

Caches fill while the process still waits to lead, so that a new leader starts at once (`delayCacheUntilActive` puts
that off). Only a leader schedules. How it leads and stops is `podium.serving.process_loop`'s.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

from podium.client import WatchedOutcomes
from podium.config.resolved import SchedulerConfig
from podium.framework.clock import Clock
from podium.load.sources import Telemetry
from podium.run.activity import EVERY
from podium.run.driver import LiveScheduler
from podium.run.metrics import Metrics
from podium.serving.election import Election
from podium.serving.event_recorder import EventRecorder
from podium.serving.log import LOG
from podium.serving.process_loop import ProcessLoop, WatchingThread

GRACE = 10.0
"""Seconds that bindings under way get when the process is stopped."""
LAST_WRITES = 3.0
"""Seconds for conditions and events that have not been written by then."""
FIRST_LOAD = 5.0
"""Seconds that the first pods wait for measured load; then they are placed without."""
FIRST_RESTORE = 30.0
"""Seconds that they wait for what was learnt: it is on the API server, without which they could not be bound either."""


@dataclass(frozen=True)
class SchedulerProcess:
    """The parts of one scheduler process."""

    live: LiveScheduler
    recorder: EventRecorder
    loop: ProcessLoop
    telemetry: Telemetry
    pod_outcomes: WatchedOutcomes
    metrics: Metrics
    clock: Clock
    config: SchedulerConfig
    before_scheduling: Callable[[], None]
    """Called when all that was listed is in memory."""
    threads: Sequence[WatchingThread] = ()

    @property
    def election(self) -> Election | None:
        return self.loop.election

    def leads(self) -> bool:
        return self.loop.leads()

    def not_synced(self) -> str | None:
        """The readiness check `sched-handler-sync`."""
        missing = self.live.informers.waiting_for
        return f"handlers are not fully synchronized: {', '.join(missing)}" if missing else None

    async def run(self, stop: asyncio.Event) -> int:
        """Schedule until `stop` is set (0) or until the lease is lost (1)."""
        delayed = self.config.delay_cache_until_active
        beside = [self.recorder.run(), *(() if delayed else self._caches())]
        for thread in self.threads:
            thread.start()
        try:
            return await self.loop.run(stop, beside, self._work, self._finish)
        finally:
            for thread in self.threads:
                thread.stop()

    def _caches(self) -> list[Coroutine[Any, Any, None]]:
        return [self.live.watch(), self._measure(), self._learn()]

    async def _measure(self) -> None:
        """Keep measured load fresh, from when nodes are known that it can belong to."""
        await self.live.informers.synced()
        await self.telemetry.run()

    async def _learn(self) -> None:
        """Learn from what becomes of pods; where no plugin wants that, do nothing for as long as the others work."""
        await self.pod_outcomes.run()
        await asyncio.Event().wait()

    def _work(self) -> None:
        """Start what only a leader does."""
        if self.config.delay_cache_until_active:
            for each in self._caches():
                self.loop.start(each)
        self.loop.start(self._schedule())
        if self.threads:
            self.loop.start(self._say_what_happens())

    async def _schedule(self) -> None:
        await self.live.informers.synced()
        await asyncio.gather(self.telemetry.first_refresh(FIRST_LOAD), self.pod_outcomes.restored(FIRST_RESTORE))
        self.before_scheduling()
        LOG.info("podium runs: scheduling for %s", ", ".join(self.live.engine.profiles))
        await self.live.schedule()

    async def _say_what_happens(self) -> None:
        while True:
            await asyncio.sleep(EVERY)
            line = self.live.activity.take_line(self.live.engine.queue.pending())
            if line is not None:
                LOG.info("%s", line)

    async def _finish(self) -> None:
        """Finish bindings, and write what is still to be written."""
        await self.live.finish(GRACE)
        last_writes = asyncio.gather(
            self.live.statuses.drained(), self.recorder.drain(LAST_WRITES), self.pod_outcomes.flush()
        )
        try:
            await asyncio.wait_for(last_writes, LAST_WRITES)
        except TimeoutError:
            LOG.warning("some conditions and events could not be written in time")
        LOG.info("%s", self.live.activity.last_line(self.live.engine.queue.pending()))
