"""A scheduler process from start to end: watch, lead, schedule, stop.

Caches fill while the process still waits to lead, so that a new leader starts at once (`delayCacheUntilActive` puts
that off). Only a leader schedules; its writes pass a guard that asks at the last moment whether the lease still holds,
so a process that slept through the end of its lease writes nothing. When the lease is lost the process ends with 1, as
kube-scheduler does: whoever watches over it starts it anew, and the API server holds all there is to know. When it is
told to stop, it first finishes what is under way, then hands the lease over and ends with 0.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Coroutine, Iterable
from contextlib import AsyncExitStack
from typing import Any, NamedTuple

from podium.client import Access, Client, WatchedExperience
from podium.config import to_dict
from podium.config.registry import Registry
from podium.config.resolved import SchedulerConfig
from podium.kube import Node, Pod
from podium.live.driver import LiveScheduler
from podium.live.election.election import Election, LeadershipLost
from podium.live.endpoints.options import ServingOptions, build_endpoint_access
from podium.live.endpoints.server import EndpointServer
from podium.live.environment import ProcessEnvironment, this_machine
from podium.live.events.recorder import EventRecorder
from podium.live.metrics.load import show_load
from podium.live.metrics.registry import Metrics
from podium.live.metrics.resources import resource_metrics
from podium.live.shadow import Shadow, log_finding
from podium.serving.log import LOG
from podium.serving.signals import stop_on_signals
from podium.telemetry import Telemetry

GRACE = 10.0
"""Seconds that bindings under way get when the process is told to stop."""
LAST_WORDS = 3.0
"""Seconds for conditions and events that have not been written by then."""
FIRST_LOAD = 5.0
"""Seconds that the first pods wait for measured load and for what was learnt; then they are placed without."""
BUSY = 8
"""Bindings under way from which on events wait a while: they tell of what has happened, and bindings make it happen."""
FINE, LOST = 0, 1


class RunOptions(NamedTuple):
    user_agent: str = "podium"
    shadow: bool = False
    serving: ServingOptions = ServingOptions()


async def run(config: SchedulerConfig, registry: Registry, access: Access, options: RunOptions) -> int:
    """Run until told to stop (0) or until the lease is lost (1)."""
    stop = stop_on_signals()
    async with AsyncExitStack() as stack:
        process = SchedulerProcess(config, registry, access, options, stack)
        if options.serving.secure_port:
            await process.serve(options.serving, access, stack)
        return await process.run(stop)


class SchedulerProcess:
    """What one scheduler process holds."""

    def __init__(
        self,
        config: SchedulerConfig,
        registry: Registry,
        access: Access,
        options: RunOptions,
        stack: AsyncExitStack,
        surroundings: ProcessEnvironment | None = None,
    ) -> None:
        self._surroundings = surroundings or this_machine()
        clock, rng, stopwatch, hostname, _settle = self._surroundings
        self._config = config
        self._stopping = False
        qps, burst = config.request_limits
        self._client = Client(access, qps=qps, burst=burst, user_agent=options.user_agent, rng=rng)
        # The lease and the events go their own way: neither may wait behind bindings, nor be stopped by their guard.
        self._aside = Client(access, user_agent=options.user_agent, rng=rng)
        self._metrics = Metrics(clock, now=stopwatch, rng=rng)
        for client in (self._client, self._aside):
            client.on_request = self._metrics.on_request
            stack.push_async_exit(client)
        self._recorder = EventRecorder(
            self._aside,
            host=hostname,
            clock=clock,
            rng=rng,
            report=LOG.warning,
            busy=lambda: self.live.writer.binding >= BUSY,
        )
        elects = config.leader_election.leader_elect and not options.shadow
        self.election = self._candidate() if elects else None
        shadow = Shadow(log_finding) if options.shadow else None
        self._telemetry = Telemetry(
            clock=clock,
            rng=rng,
            nodes=self._nodes,
            pods=self._nodes_of_pods,
            api=self._aside,
            report=LOG.warning,
        )
        self._experience = WatchedExperience(
            self._aside,
            clock=clock,
            rng=rng,
            report=LOG.warning,
            may_write=lambda: self._leads() and not options.shadow,
        )
        self.live = LiveScheduler(
            config,
            registry,
            self._client,
            self._recorder,
            clock=clock,
            rng=rng,
            load=self._telemetry,
            experience=self._experience,
            metrics=self._metrics,
            shadow=shadow,
        )
        show_load(self._metrics, self._telemetry, clock)
        self._metrics.counter(
            "podium_events_dropped_total", "Events that could not be sent.", lambda: {(): self._recorder.dropped}
        )
        if self.election is not None:
            self._metrics.leads(config.leader_election.resource_name, self.election.leading)
        if shadow is not None:
            self._metrics.counter(
                "podium_shadow_comparisons_total",
                "Decisions compared with those of the scheduler in charge, by outcome.",
                lambda: {(outcome,): count for outcome, count in shadow.counts.items()},
                ("outcome",),
            )

    def _candidate(self) -> Election:
        clock, rng, _stopwatch, hostname, _settle = self._surroundings
        lease = self._config.leader_election
        first_profile = self._config.profiles[0].scheduler_name
        return Election(
            self._aside,
            namespace=lease.resource_namespace,
            name=lease.resource_name,
            identity=f"{hostname}_{uuid.UUID(int=rng.getrandbits(128), version=4)}",
            lease_duration=lease.lease_duration.seconds,
            renew_deadline=lease.renew_deadline.seconds,
            retry_period=lease.retry_period.seconds,
            clock=clock,
            rng=rng,
            report=LOG.info,
            on_event=lambda lease, note: self._recorder.record_election(lease, note, first_profile),
        )

    async def serve(self, options: ServingOptions, access: Access, stack: AsyncExitStack) -> None:
        """Serve health, metrics and configuration; raises OSError where the port cannot be had."""
        gate = build_endpoint_access(options, access)
        for client in gate.clients:
            stack.push_async_exit(client)
        election = {} if self.election is None else {"leaderElection": self.election.unhealthy}
        serving = EndpointServer(
            self._metrics,
            lambda: to_dict(self._config),
            gate.control,
            healthz=election,
            readyz={**election, "shutdown": self._shutting_down, "sched-handler-sync": self._not_synced},
            resources=lambda: resource_metrics(self._pods, self._leads),
            tls=gate.tls.context,
            host=options.bind_address,
            port=options.secure_port,
        )
        await serving.start()
        stack.push_async_callback(serving.stop)

    def _shutting_down(self) -> str | None:
        return "process is shutting down" if self._stopping else None

    def _not_synced(self) -> str | None:
        missing = self.live.informers.waiting_for
        return f"handlers are not fully synchronized: {', '.join(missing)}" if missing else None

    def _leads(self) -> bool:
        return self.election is None or self.election.leading()

    def _pods(self) -> Iterable[Pod]:
        return list(self.live.informers.by_kind[Pod].store.values())

    def _nodes(self) -> Iterable[Node]:
        return list(self.live.informers.by_kind[Node].store.values())

    def _nodes_of_pods(self) -> dict[str, str]:
        cluster = self.live.engine.cluster
        return {placed.pod.key: cluster.names[placed.row] for placed in cluster.pods.values()}

    async def run(self, stop: asyncio.Event) -> int:
        tasks: list[asyncio.Task[Any]] = []

        def start(work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
            tasks.append(asyncio.create_task(work))
            return tasks[-1]

        start(stop.wait())
        start(self._recorder.run())
        try:
            if not self._config.delay_cache_until_active:
                start(self.live.watch())
                start(self._measure())
                start(self._learn())
            if self.election is not None:
                leading = start(self.election.acquire())
                await _first(tasks)
                if not leading.done():
                    return FINE
                tasks.remove(leading)
                self._client.guard = self.election.guard
                start(self.election.keep())
            if self._config.delay_cache_until_active:
                start(self.live.watch())
                start(self._measure())
                start(self._learn())
            start(self._schedule())
            try:
                await _first(tasks)
            except LeadershipLost as loss:
                LOG.error("%s; ending, so that what starts next begins from the API server alone", loss)
                return LOST
            LOG.info("told to stop: finishing what is under way")
            self._stopping = True
            await self._wind_up()
            return FINE
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

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
        await asyncio.gather(self._telemetry.asked(FIRST_LOAD), self._experience.recalled(FIRST_LOAD))
        self._surroundings.settle()
        LOG.info("podium runs: scheduling for %s", ", ".join(self.live.engine.profiles))
        await self.live.schedule()

    async def _wind_up(self) -> None:
        """Finish bindings, say what is still to be said, and let the next leader begin at once."""
        await self.live.finish(GRACE)
        last_words = asyncio.gather(
            self.live.statuses.drained(), self._recorder.drain(LAST_WORDS), self._experience.flush()
        )
        try:
            await asyncio.wait_for(last_words, LAST_WORDS)
        except TimeoutError:
            LOG.warning("some conditions and events could not be written in time")
        if self.election is not None:
            await self.election.release()


async def _first(tasks: list[asyncio.Task[Any]]) -> None:
    """Wait until one of the tasks ends; one that failed fails the process, with its own error."""
    done, _pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()
