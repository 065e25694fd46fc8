"""Runs a scheduler process from start to end: watch, lead, schedule, stop.

Caches fill while the process still waits to lead, so that a new leader starts at once (`delayCacheUntilActive` puts
that off). Only a leader schedules; its writes pass a guard that asks at the last moment whether the lease still holds,
so a process that slept through the end of its lease writes nothing. When the lease is lost the process ends with 1, as
kube-scheduler does: its supervisor starts it again, and the API server holds all there is to know. When a signal stops
it, it first finishes what is under way, then hands the lease over and ends with 0.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol

from podium.client import Client, WatchedExperience
from podium.config.resolved import SchedulerConfig
from podium.framework.clock import Clock
from podium.load.sources import Telemetry
from podium.run.activity import EVERY
from podium.run.driver import LiveScheduler
from podium.run.metrics.registry import Metrics
from podium.serving.election.election import Election, LeadershipLost
from podium.serving.events.recorder import EventRecorder
from podium.serving.first_ended import first_ended
from podium.serving.log import LOG

GRACE = 10.0
"""Seconds that bindings under way get when the process is stopped."""
LAST_WRITES = 3.0
"""Seconds for conditions and events that have not been written by then."""
FIRST_LOAD = 5.0
"""Seconds that the first pods wait for measured load; then they are placed without."""
FIRST_RECALL = 30.0
"""Seconds that they wait for what was learnt: it is on the API server, without which they could not be bound either."""
FINE, LOST = 0, 1


class WatchingThread(Protocol):
    """Watches the event loop on which it is started."""

    def start(self) -> None: ...

    def stop(self) -> None: ...


class SchedulerProcess:
    """The parts of one scheduler process.

    `before_scheduling` is called when all that was listed is in memory. One that `reacquires_lease` does not end when
    another scheduler has taken its lease, but waits for it.
    """

    def __init__(
        self,
        live: LiveScheduler,
        client: Client,
        recorder: EventRecorder,
        election: Election | None,
        telemetry: Telemetry,
        experience: WatchedExperience,
        metrics: Metrics,
        *,
        clock: Clock,
        config: SchedulerConfig,
        before_scheduling: Callable[[], None],
        reacquires_lease: bool = False,
        threads: Sequence[WatchingThread] = (),
    ) -> None:
        self.live = live
        self.election = election
        self.metrics = metrics
        self.clock = clock
        self.config = config
        self._client = client
        self._recorder = recorder
        self._telemetry = telemetry
        self._experience = experience
        self._before_scheduling = before_scheduling
        self._reacquires_lease = reacquires_lease
        self._threads = threads
        self._stopping = False

    def leads(self) -> bool:
        return self.election is None or self.election.leading()

    def shutting_down(self) -> str | None:
        """The readiness check `shutdown`."""
        return "process is shutting down" if self._stopping else None

    def not_synced(self) -> str | None:
        """The readiness check `sched-handler-sync`."""
        missing = self.live.informers.waiting_for
        return f"handlers are not fully synchronized: {', '.join(missing)}" if missing else None

    async def run(self, stop: asyncio.Event) -> int:
        """Schedule until `stop` is set (0) or until the lease is lost (1)."""
        tasks: list[asyncio.Task[Any]] = []

        def start(work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
            tasks.append(asyncio.create_task(work))
            return tasks[-1]

        def start_caches() -> None:
            start(self.live.watch())
            start(self._measure())
            start(self._learn())

        start(stop.wait())
        start(self._recorder.run())
        for thread in self._threads:
            thread.start()
        try:
            if not self.config.delay_cache_until_active:
                start_caches()
            if self.election is not None:
                LOG.info("trying to acquire %s, as %s", self.election.where, self.election.identity)
                leading = start(self.election.acquire())
                await first_ended(tasks)
                if not leading.done():
                    LOG.info("stopped while %s led", self.election.leader or "no scheduler that is known of")
                    return FINE
                tasks.remove(leading)
                self._client.guard = self.election.guard
                start(self._keep_leading(self.election))
            if self.config.delay_cache_until_active:
                start_caches()
            start(self._schedule())
            if self._threads:
                start(self._say_what_happens())
            try:
                await first_ended(tasks)
            except LeadershipLost as loss:
                LOG.error("%s; ending, so that what starts next begins from the API server alone", loss)
                return LOST
            LOG.info("stopping: finishing what is under way")
            self._stopping = True
            await self._finish()
            LOG.info("%s", self.live.activity.last_line(self.live.engine.queue.pending()))
            return FINE
        finally:
            for thread in self._threads:
                thread.stop()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _keep_leading(self, election: Election) -> None:
        while True:
            try:
                await election.keep()
            except LeadershipLost as loss:
                if not self._reacquires_lease:
                    raise
                LOG.warning("%s; waiting until it can be taken again", loss)
            await election.acquire()

    async def _measure(self) -> None:
        """Keep measured load fresh, from when nodes are known that it can belong to."""
        await self.live.informers.synced()
        await self._telemetry.run()

    async def _learn(self) -> None:
        """Learn from what becomes of pods; where no plugin wants that, do nothing for as long as the others work."""
        await self._experience.run()
        await asyncio.Event().wait()

    async def _schedule(self) -> None:
        await self.live.informers.synced()
        await asyncio.gather(self._telemetry.first_refresh(FIRST_LOAD), self._experience.recalled(FIRST_RECALL))
        self._before_scheduling()
        LOG.info("podium runs: scheduling for %s", ", ".join(self.live.engine.profiles))
        await self.live.schedule()

    async def _say_what_happens(self) -> None:
        while True:
            await asyncio.sleep(EVERY)
            line = self.live.activity.take_line(self.live.engine.queue.pending())
            if line is not None:
                LOG.info("%s", line)

    async def _finish(self) -> None:
        """Finish bindings, write what is still to be written, and let the next leader begin at once."""
        await self.live.finish(GRACE)
        last_writes = asyncio.gather(
            self.live.statuses.drained(), self._recorder.drain(LAST_WRITES), self._experience.flush()
        )
        try:
            await asyncio.wait_for(last_writes, LAST_WRITES)
        except TimeoutError:
            LOG.warning("some conditions and events could not be written in time")
        if self.election is not None:
            await self.election.release()
