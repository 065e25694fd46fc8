"""Builds the process of `podium controller`, and runs it from start to end: watch, lead, reconcile, stop.

Every part is made here, once, and handed what it needs.

The lease and the events have a client of their own: neither may be stopped by the guard of the controllers' writes.
Collections are watched while the process still waits to lead. Only a leader writes.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from podium.client import Access, Client
from podium.config.types import LeaderElection
from podium.controllers.catalog import choose
from podium.controllers.reconcile import Reconciler
from podium.controllers.watches import SharedWatch, shared_watches
from podium.serving.election import candidate
from podium.serving.endpoints import Endpoints, EndpointServer, ServingOptions, build_endpoint_access
from podium.serving.environment import ProcessEnvironment, stop_on_signals, this_machine
from podium.serving.event_recorder import EventRecorder
from podium.serving.log import LOG
from podium.serving.process_loop import ProcessLoop, cancel
from podium.serving.process_metrics import ProcessMetrics

NAME: Final = "podium-controller"
"""Of the lease, and of those who write its events."""
PORT: Final = 10260
QPS, BURST = 50.0, 100
"""Requests a second, and at once, of the controllers' reads and writes."""
LAST_WRITES = 3.0
"""Seconds for events that have not been written when the process is stopped."""


class ControllerOptions(NamedTuple):
    """What the command line asks for."""

    names: Sequence[str] = ()
    """The controllers; all where none is named."""
    election: LeaderElection = LeaderElection(resource_name=NAME)
    serving: ServingOptions = ServingOptions(secure_port=PORT)


async def run(access: Access, options: ControllerOptions) -> int:
    """Run until a signal stops the process (0) or until the lease is lost (1)."""
    stop = stop_on_signals()
    async with AsyncExitStack() as stack:
        process = build_controllers(access, options, stack)
        if options.serving.secure_port:
            await _serve_endpoints(process, options, access, stack)
        return await process.run(stop)


def build_controllers(
    access: Access,
    options: ControllerOptions,
    stack: AsyncExitStack,
    environment: ProcessEnvironment | None = None,
) -> ControllerProcess:
    """The process that the options describe; `stack` closes its connections."""
    environment = environment or this_machine()
    clock, rng = environment.clock, environment.rng
    client = Client(access, qps=QPS, burst=BURST, user_agent=NAME, rng=rng)
    own_client = Client(access, user_agent=NAME, rng=rng)
    metrics = ProcessMetrics()
    for each in (client, own_client):
        each.on_request = metrics.on_request
        stack.push_async_exit(each)
    recorder = EventRecorder(own_client, host=environment.hostname, clock=clock, rng=rng, report=LOG.warning)
    settings = options.election
    election = candidate(settings, own_client, recorder, environment, NAME) if settings.leader_elect else None
    controllers = choose(options.names, clock)
    resources = [
        resource
        for controller in controllers
        for resource in (controller.resource, *(each.resource for each in controller.related))
    ]
    watches = shared_watches(client, resources, report=LOG.warning, rng=rng)
    reconcilers = [Reconciler(each, client, watches, recorder, report=LOG.warning) for each in controllers]
    metrics.follow(watch.reflector for watch in watches.values())
    _show(metrics, reconcilers)
    metrics.counter("podium_events_dropped_total", "Events that could not be sent.", lambda: {(): recorder.dropped})
    if election is not None:
        metrics.leads(election.name, election.leading)
    return ControllerProcess(reconcilers, watches, recorder, ProcessLoop(election, client), metrics)


def _show(metrics: ProcessMetrics, reconcilers: Sequence[Reconciler]) -> None:
    """Put on `/metrics` what the controllers count."""

    def results() -> dict[tuple[str, ...], float]:
        found: Counter[tuple[str, ...]] = Counter()
        for each in reconcilers:
            for result, count in each.results.items():
                found[each.controller.name, result] = count
        return dict(found)

    metrics.counter(
        "podium_controller_reconciles_total",
        "Custom resources looked at, by controller and by what came of it: unchanged, written or failed.",
        results,
        ("controller", "result"),
    )
    metrics.gauge(
        "podium_controller_queue_length",
        "Custom resources that wait to be looked at.",
        lambda: {(each.controller.name,): len(each.queue) for each in reconcilers},
        ("controller",),
    )


async def _serve_endpoints(
    process: ControllerProcess, options: ControllerOptions, access: Access, stack: AsyncExitStack
) -> None:
    """Serve health, metrics and configuration until `stack` closes; raises ServingError where that cannot be done."""
    allowed = build_endpoint_access(options.serving, access)
    for client in allowed.clients:
        stack.push_async_exit(client)
    loop = process.loop
    election = {} if loop.election is None else {"leaderElection": loop.election.unhealthy}
    shown = Endpoints(
        metrics=process.metrics,
        configuration=lambda: {
            "componentconfig": {"controllers": [each.controller.name for each in process.reconcilers]}
        },
        healthz=election,
        readyz={**election, "shutdown": loop.shutting_down, "informer-sync": process.not_synced},
        flags=options.serving.flags,
    )
    at = options.serving
    server = EndpointServer(shown, allowed.control, tls=allowed.tls.context, host=at.bind_address, port=at.secure_port)
    await server.start()
    stack.push_async_callback(server.stop)


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
