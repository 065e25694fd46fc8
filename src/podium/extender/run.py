"""Runs an extender from start to end: opens its ports, watches and answers, stops.

The ports are open from the start, so that probes find them; questions about names are answered once the watch has
listed everything, and until then with an error that says so. At the end the ports close and what is under way ends.

The process builds its parts and keeps them working: watches, measures, learns. `build_process` is the only place where
the parts are put together; each value is handed on once.
"""

from __future__ import annotations

import asyncio
import gc
import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from podium.client import RESOURCES, Access, ApiResource, Client, WatchedOutcomes
from podium.client.credentials import RotatedFile
from podium.client.informers import Informers, WatchedKinds, custom_kinds
from podium.config.registry import Registry
from podium.engine.scheduler import Scheduler
from podium.extender.agents import Agent, AgentEnvironment
from podium.extender.assembly import build_engine, kinds_to_watch, runtime_of
from podium.extender.binding import BindingWriter
from podium.extender.handler import ExtenderHandler, InFlightLimits
from podium.extender.metrics import ExtenderMetrics
from podium.extender.routes import Routes
from podium.extender.server import ExtenderServer
from podium.extender.service import AgentContext
from podium.framework.clock import Clock, SystemClock
from podium.framework.plugin_failures import FirstFailures
from podium.kube.versions import NEWEST, VersionRules
from podium.load.sources import Telemetry
from podium.serving.certificate import CertificateError, certificate_of
from podium.serving.environment import stop_on_signals
from podium.serving.families import ReadFamily, counters
from podium.serving.health import Check
from podium.serving.log import LOG, log_failure
from podium.serving.process_loop import ProcessLoop
from podium.serving.process_metrics import plugin_families
from podium.serving.server_rules import ServerRules
from podium.serving.tls import ServingTls

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


PORT = 5401
MAX_BODY = 256 << 20
"""Bytes: five thousand nodes of 30 kB are 150 MB."""
SEVERAL = 2
"""So many of the largest bodies may be on their way at once."""


class ExtenderOptions(NamedTuple):
    """How an extender is run; named as the flags are."""

    ports: Sequence[int] = (PORT,)
    """One for all agents, or one for each."""
    bind_address: str = "127.0.0.1"
    config: tuple[str, str] | None = None
    """The text of a file with plugins' arguments, and its name."""
    rules: VersionRules | None = None
    """Those of a Kubernetes minor; None: of the API server's, or the newest."""
    bind: bool = False
    max_body: int = MAX_BODY
    tls_cert_file: str = ""
    tls_private_key_file: str = ""
    cert_dir: str = ""
    client_ca_file: str = ""

    @property
    def tls(self) -> bool:
        return bool(self.tls_cert_file or self.tls_private_key_file or self.cert_dir or self.client_ca_file)


async def run(agents: Sequence[Agent], registry: Registry, access: Access | None, options: ExtenderOptions) -> int:
    """Serve until a signal asks to stop. Without `access` no cluster is watched."""
    stop = stop_on_signals()
    async with AsyncExitStack() as stack:
        rules = options.rules
        if rules is None:
            rules = NEWEST if access is None else await ServerRules(lambda: Client(access)).first()
        process = build_process(agents, registry, access, stack, config=options.config, rules=rules, bind=options.bind)
        await _serve(process, options, stack)
        return await process.run(stop)


async def _serve(process: ExtenderProcess, options: ExtenderOptions, stack: AsyncExitStack) -> None:
    """Open the ports: one for all agents, or one for each."""
    tls = _tls(options) if options.tls else None
    in_flight = InFlightLimits(SEVERAL * options.max_body)
    for number, port in enumerate(options.ports):
        agents = [process.agents[number]] if len(options.ports) > 1 else process.agents
        server = ExtenderServer(
            ExtenderHandler(Routes(process.context, agents), process.metrics, max_body=options.max_body),
            in_flight,
            host=options.bind_address,
            port=port,
            readyz=process.readiness(agents),
            tls=None if tls is None else tls.context,
            needs_certificate=bool(options.client_ca_file),
        )
        await server.start()
        stack.push_async_callback(server.stop)
        scheme = "http" if tls is None else "https"
        names = ", ".join(agent.name for agent in agents)
        LOG.info("serving %s on %s://%s:%d", names, scheme, options.bind_address, server.port)


def _tls(options: ExtenderOptions) -> ServingTls:
    hosts = ("localhost", options.bind_address)
    source = certificate_of(options.tls_cert_file, options.tls_private_key_file, options.cert_dir, hosts=hosts)
    return ServingTls(source, authorities_of(options.client_ca_file), asyncio.get_running_loop().time, LOG.warning)


def authorities_of(file: str) -> Callable[[], bytes]:
    """The PEM in the file, now and later; nothing without a file."""
    if not file:
        return lambda: b""
    return ClientAuthorityFile(file).read


class ClientAuthorityFile:
    """A file of authorities; what cannot be read any more stays as it was last."""

    def __init__(self, file: str) -> None:
        self._file = RotatedFile(Path(file))
        try:
            self._last = self._file.read(0.0)
        except OSError as problem:
            raise CertificateError(f"--client-ca-file {file} cannot be read: {problem.strerror}") from None

    def read(self) -> bytes:
        try:
            self._last = self._file.read(asyncio.get_running_loop().time())
        except OSError as problem:
            LOG.warning("--client-ca-file %s cannot be read: %s", self._file.path, problem.strerror)
        return self._last
