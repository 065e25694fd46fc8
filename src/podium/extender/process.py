"""Builds the parts of an extender process and keeps them working: watches, measures, learns.

`build_process` is the only place where the parts are put together; each value is handed on once.
"""

from __future__ import annotations

import asyncio
import gc
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from typing import Any

from podium.client import RESOURCES, Access, ApiResource, Client, WatchedOutcomes
from podium.client.informers import Informers, WatchedKinds, custom_kinds
from podium.config.registry import Registry
from podium.engine.scheduler import Scheduler
from podium.extender.agents import Agent, AgentEnvironment
from podium.extender.assembly import build_engine, kinds_to_watch, runtime_of
from podium.extender.binding import BindingWriter
from podium.extender.metrics import ExtenderMetrics
from podium.extender.service import AgentContext
from podium.framework.clock import Clock, SystemClock
from podium.framework.plugin_failures import FirstFailures
from podium.kube.versions import VersionRules
from podium.load.sources import Telemetry
from podium.serving.families import ReadFamily, counters
from podium.serving.health import Check
from podium.serving.log import LOG, log_failure
from podium.serving.process_loop import ProcessLoop
from podium.serving.process_metrics import plugin_families

LAST_WRITE = 3.0
"""Seconds at the end for what was learnt and is not written yet."""


def build_process(
    agents: Sequence[Agent],
    registry: Registry,
    access: Access | None,
    stack: AsyncExitStack,
    *,
    config: tuple[str, str] | None,
    rules: VersionRules,
    bind: bool,
) -> ExtenderProcess:
    """All parts but the ports. Without `access` no cluster is watched."""
    clock, rng = SystemClock(), random.Random()
    client = None if access is None else Client(access, user_agent="podium-extender", rng=rng)
    if client is not None:
        stack.push_async_exit(client)
    telemetry = Telemetry(
        clock=clock,
        rng=rng,
        nodes=lambda: [node for node in engine.cluster.nodes if node is not None],
        pods=lambda: {each.pod.key: engine.cluster.names[each.row] for each in engine.cluster.pods.values()},
        api=client,
        report=LOG.warning,
    )
    pod_outcomes = None if client is None else WatchedOutcomes(client, clock=clock, rng=rng, report=LOG.warning)
    failures = FirstFailures(log_failure)
    engine = build_engine(
        agents,
        registry,
        clock=clock,
        writer=BindingWriter(client if bind else None),
        config=config,
        rules=rules,
        rng=rng,
        load=telemetry,
        pod_outcomes=pod_outcomes,
        report=LOG.warning,
        on_failure=failures,
    )
    informers = None if client is None else _informers(client, engine, agents, rng)
    sync = WatchSync(informers)
    return ExtenderProcess(
        agents=agents,
        clock=clock,
        client=client,
        engine=engine,
        informers=informers,
        telemetry=telemetry,
        pod_outcomes=pod_outcomes,
        sync=sync,
        context=AgentContext(engine, watched=client is not None, unready=sync.missing),
        metrics=ExtenderMetrics(
            lambda: len(engine.cluster.order.rows),
            lambda: sync.missing() is None,
            lambda: engine.answer_cache.errors.count,
            [
                *plugin_families(engine.profiles),
                ReadFamily(
                    counters,
                    "podium_plugin_failures_total",
                    "Exceptions and wrong answers of plugins; the first of each kind is in the log.",
                    lambda: {labels: float(count) for labels, count in failures.counts.items()},
                    ("plugin", "extension_point"),
                ),
            ],
        ),
    )


def _informers(client: Client, engine: Scheduler, agents: Sequence[Agent], rng: random.Random) -> Informers:
    wanted = kinds_to_watch([type(plugin) for plugin in runtime_of(engine).plugins.values()])
    more = [RESOURCES[kind] for agent in agents for kind in agent.watches]
    resources: dict[str, ApiResource[Any]] = {each.path: each for each in (*wanted, *more)}
    return Informers(
        client,
        engine.intake,
        changed=lambda: None,
        rng=rng,
        report=LOG.warning,
        watched=WatchedKinds(custom=custom_kinds(engine.profiles.values()), resources=resources.values()),
    )


class WatchSync:
    """Whether the watch has listed everything; once it has, that stays so."""

    def __init__(self, informers: Informers | None) -> None:
        self._informers = informers
        self._synced = informers is None

    def missing(self) -> str | None:
        """What the watch still waits for, as a sentence; None when it has listed everything."""
        if self._synced or self._informers is None:
            return None
        missing = self._informers.waiting_for
        self._synced = not missing
        return f"the cluster is not known yet: waiting for {', '.join(missing)}" if missing else None


@dataclass(frozen=True)
class ExtenderProcess:
    """The parts of an extender that watches, measures and learns; without a client it does none of that."""

    agents: Sequence[Agent]
    clock: Clock
    client: Client | None
    engine: Scheduler
    informers: Informers | None
    telemetry: Telemetry
    pod_outcomes: WatchedOutcomes | None
    sync: WatchSync
    context: AgentContext
    metrics: ExtenderMetrics

    @property
    def plugins(self) -> Mapping[str, Any]:
        return runtime_of(self.engine).plugins

    def readiness(self, agents: Sequence[Agent]) -> dict[str, Check]:
        """The checks behind /readyz of a port that serves these agents."""
        checks: dict[str, Check] = {"watch": self.sync.missing}
        for agent in agents:
            if agent.unready is not None:
                checks[agent.name] = _check_of(agent.unready, self.plugins)
        return checks

    async def run(self, stop: asyncio.Event) -> int:
        """Keep the cluster and what agents learn up to date, until `stop` is set."""
        watching = [] if self.informers is None else [self.informers.run()]
        try:
            return await ProcessLoop().run(stop, [*watching, self._after_sync()])
        finally:
            if self.pod_outcomes is not None:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self.pod_outcomes.flush(), LAST_WRITE)

    async def _after_sync(self) -> None:
        if self.informers is not None:
            await self.informers.synced()
        gc.collect()
        gc.freeze()  # what was listed stays: no need to look through it at every collection
        LOG.info("podium extender answers: %d nodes", len(self.engine.cluster.order.rows))
        environment = AgentEnvironment(self.plugins, self.engine, self.client, self.clock, LOG.warning)
        async with asyncio.TaskGroup() as group:
            group.create_task(self.telemetry.run())
            if self.pod_outcomes is not None:
                group.create_task(self.pod_outcomes.run())
            for agent in self.agents:
                if agent.companion is not None:
                    group.create_task(agent.companion(environment))


def _check_of(unready: Callable[[Mapping[str, Any]], str | None], plugins: Mapping[str, Any]) -> Check:
    return lambda: unready(plugins)
