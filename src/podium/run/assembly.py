"""Builds the scheduler process of a live cluster: every part is made here, once, and handed what it needs.

    clients → metrics → events → election → measured load, pod outcomes → the scheduler → endpoints

The lease and the events have a client of their own: neither may wait behind bindings, nor be stopped by their guard.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from types import MappingProxyType
from typing import NamedTuple

from podium.client import Access, Client, WatchedOutcomes
from podium.config.registry import Registry
from podium.config.resolved import SchedulerConfig
from podium.kube import Node, Pod
from podium.kube.versions import VersionRules
from podium.load.metrics import load_metrics
from podium.load.sources import Telemetry
from podium.run.dashboard import DashboardAddress, serve_process
from podium.run.driver import LiveParts, LiveScheduler
from podium.run.memory_dump import dump_on_signal
from podium.run.metrics import Metrics, resource_metrics
from podium.run.plugin_watchdog import PluginWatchdog
from podium.run.pod_history import PodHistory
from podium.run.process import SchedulerProcess
from podium.run.scheduler_pages import configuration_page, queue_page, read_question
from podium.run.shadow import Shadow, log_finding
from podium.serving import address
from podium.serving.election import Election, candidate
from podium.serving.endpoints import Endpoints, EndpointServer, ServingOptions, build_endpoint_access
from podium.serving.environment import ProcessEnvironment, stop_on_signals, this_machine
from podium.serving.event_recorder import EventRecorder
from podium.serving.log import LOG
from podium.serving.plugin_pages import PageAddress, serve_pages
from podium.serving.process_loop import FINE, BlockedLoopRenewal, ProcessLoop, WatchingThread, cancel, first_ended
from podium.serving.server_rules import ServerRules

BUSY = 8
"""Bindings under way from which on events wait a while: they tell of what has happened, and bindings make it happen."""


class RunOptions(NamedTuple):
    """What the command line adds to the configuration."""

    user_agent: str = "podium"
    shadow: bool = False
    serving: ServingOptions = ServingOptions()
    server_in_process: bool = False
    """Whether the API server runs in this process, so that a pause of one is a pause of the other."""
    pages: Mapping[str, PageAddress] = MappingProxyType({})
    """Where pages of plugins are served, by their name; the others are served where they say."""
    remembers: bool = False
    """Whether what happens to pods is remembered, for a dashboard."""
    dashboard: DashboardAddress | None = None
    configure: Callable[[VersionRules], SchedulerConfig] | None = None
    """Reads the configuration by the rules of the API server's minor; None: the rules are given."""


def build_process(
    config: SchedulerConfig,
    registry: Registry,
    access: Access,
    options: RunOptions,
    stack: AsyncExitStack,
    environment: ProcessEnvironment | None = None,
) -> SchedulerProcess:
    """The process that `config` describes; `stack` closes its connections."""
    environment = environment or this_machine()
    clock, rng = environment.clock, environment.rng
    qps, burst = config.request_limits
    client = Client(access, qps=qps, burst=burst, user_agent=options.user_agent, rng=rng)
    own_client = Client(access, user_agent=options.user_agent, rng=rng)
    metrics = Metrics(clock, now=environment.timer, rng=rng)
    for each in (client, own_client):
        each.on_request = metrics.on_request
        stack.push_async_exit(each)

    def nodes() -> Iterable[Node]:
        return list(live.informers.by_kind[Node].store.values())

    def nodes_of_pods() -> Mapping[str, str]:
        cluster = live.engine.cluster
        return {placed.pod.key: cluster.names[placed.row] for placed in cluster.pods.values()}

    recorder = EventRecorder(
        own_client,
        host=environment.hostname,
        clock=clock,
        rng=rng,
        report=LOG.warning,
        busy=lambda: live.writer.binding >= BUSY,
    )
    elects = config.leader_election.leader_elect and not options.shadow
    election = (
        candidate(
            config.leader_election,
            own_client,
            recorder,
            environment,
            config.profiles[0].scheduler_name,
            server_in_process=options.server_in_process,
        )
        if elects
        else None
    )
    telemetry = Telemetry(clock=clock, rng=rng, nodes=nodes, pods=nodes_of_pods, api=own_client, report=LOG.warning)
    pod_outcomes = WatchedOutcomes(
        own_client, clock=clock, rng=rng, report=LOG.warning, may_write=lambda: process.leads() and not options.shadow
    )
    shadow = Shadow(log_finding) if options.shadow else None
    parts = LiveParts(
        client=client,
        recorder=recorder,
        clock=clock,
        rng=rng,
        load=telemetry,
        pod_outcomes=pod_outcomes,
        metrics=metrics,
        shadow=shadow,
        history=PodHistory(clock) if options.remembers else None,
    )
    live = LiveScheduler(config, registry, parts)
    metrics.show(load_metrics(telemetry, clock))
    _show(metrics, recorder, election, shadow)
    watchdog = PluginWatchdog(
        [plugin for runtime in live.engine.profiles.values() for plugin in runtime.plugins.values()], LOG.warning
    )
    metrics.counter(
        "podium_plugin_blocked_seconds_total",
        "Seconds for which calls of plugins that took more than 100 ms held up the process; the log names them.",
        lambda: {call: seconds for call, seconds in watchdog.seconds.copy().items()},  # noqa: C416  (mypy tells them apart)
        ("plugin", "method"),
    )
    threads: list[WatchingThread] = [watchdog]
    if election is not None:

        def connect() -> Client:
            return Client(access, user_agent=options.user_agent)

        threads.append(BlockedLoopRenewal(election, connect, LOG.warning))
    process = SchedulerProcess(
        live=live,
        recorder=recorder,
        loop=ProcessLoop(election, client, reacquires_lease=options.server_in_process),
        telemetry=telemetry,
        pod_outcomes=pod_outcomes,
        metrics=metrics,
        clock=clock,
        config=config,
        before_scheduling=environment.settle,
        threads=threads if environment.real_time else (),
    )
    return process


def _show(metrics: Metrics, recorder: EventRecorder, election: Election | None, shadow: Shadow | None) -> None:
    """Put on `/metrics` what the parts count."""
    metrics.counter("podium_events_dropped_total", "Events that could not be sent.", lambda: {(): recorder.dropped})
    if election is not None:
        metrics.leads(election.name, election.leading)
    if shadow is not None:
        metrics.counter(
            "podium_shadow_comparisons_total",
            "Decisions compared with those of the scheduler in charge, by outcome.",
            lambda: {(outcome,): count for outcome, count in shadow.counts.items()},
            ("outcome",),
        )


async def serve_endpoints(
    process: SchedulerProcess, options: ServingOptions, access: Access, stack: AsyncExitStack
) -> None:
    """Serve health, metrics and configuration until `stack` closes; raises ServingError where that cannot be done."""
    allowed = build_endpoint_access(options, access)
    for client in allowed.clients:
        stack.push_async_exit(client)
    informers = process.live.informers
    election = {} if process.election is None else {"leaderElection": process.election.unhealthy}

    def pods() -> Iterable[Pod]:
        return list(informers.by_kind[Pod].store.values())

    shown = Endpoints(
        metrics=process.metrics,
        configuration=lambda: configuration_page(process),
        healthz=election,
        readyz={**election, "shutdown": process.loop.shutting_down, "sched-handler-sync": process.not_synced},
        resources=lambda: resource_metrics(pods, process.leads),
        queue=lambda query: queue_page(process, read_question(query)),
        flags=options.flags,
    )
    server = EndpointServer(
        shown, allowed.control, tls=allowed.tls.context, host=options.bind_address, port=options.secure_port
    )
    await server.start()
    stack.push_async_callback(server.stop)
    LOG.info("serving health, metrics and configuration on https://%s", address(options.bind_address, server.port))


async def serve_plugin_pages(process: SchedulerProcess, options: RunOptions, stack: AsyncExitStack) -> None:
    """Serve the pages that plugins offer until `stack` closes."""
    await serve_pages(process.live.engine.profiles, options.pages, stack)


async def run(config: SchedulerConfig, registry: Registry, access: Access, options: RunOptions) -> int:
    """Run until a signal stops the process (0) or until the lease is lost (1)."""
    stop = stop_on_signals()
    server = ServerRules(lambda: Client(access, user_agent=options.user_agent))
    if options.configure is not None:
        async with AsyncExitStack() as stack:  # what cannot be built is said before the server is asked
            build_process(config, registry, access, options, stack)
        config = options.configure(await server.first())
    while True:
        async with AsyncExitStack() as stack:
            process = build_process(config, registry, access, options, stack)
            dump_on_signal(process.live)
            if options.serving.secure_port:
                await serve_endpoints(process, options.serving, access, stack)
            await serve_plugin_pages(process, options, stack)
            if options.dashboard is not None:
                await serve_process(process, registry, options.dashboard, options.serving, access, stack)
            if options.configure is None:
                return await process.run(stop)
            before, ended = config.rules, asyncio.Event()
            ending = asyncio.create_task(_end_for_other_rules(process, server, stop, ended))
            try:
                code = await process.run(ended)
            finally:
                await cancel((ending,))
        if stop.is_set() or code != FINE:
            return code
        config = options.configure(server.rules)
        LOG.info("the API server is of another minor now: deciding as Kubernetes %s, not %s", config.rules, before)


async def _end_for_other_rules(
    process: SchedulerProcess, server: ServerRules, stop: asyncio.Event, ended: asyncio.Event
) -> None:
    """Have a process end in good order: when all shall stop, or when it decides by rules that no longer count."""
    stopping = asyncio.create_task(stop.wait())
    changing = asyncio.create_task(server.changed(process.live.informers.by_kind))
    try:
        await first_ended((stopping, changing))
    finally:
        ended.set()
        await cancel((stopping, changing))
