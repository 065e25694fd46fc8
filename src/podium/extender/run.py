"""An extender process from start to end: watch, answer, stop.

The ports are open from the start, so that probes find somebody; questions about names are answered once the watch has
listed everything, and until then with an error that says so. Told to stop, it closes its ports and lets what is under
way end.
"""

from __future__ import annotations

import asyncio
import gc
import random
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any, NamedTuple

from podium.client import RESOURCES, Access, ApiResource, Client, WatchedExperience
from podium.client.files import RotatedFile
from podium.client.informers import Informers, custom_kinds
from podium.config.registry import Registry
from podium.extender.agents import Agent, Surroundings
from podium.extender.assembly import build_engine, kinds_to_watch, runtime_of
from podium.extender.binding import Writing
from podium.extender.connections import InFlight
from podium.extender.handler import Desk
from podium.extender.metrics import Measures
from podium.extender.routes import Routes
from podium.extender.server import Server
from podium.extender.service import Shared
from podium.framework.clock import SystemClock
from podium.kube import Node
from podium.serving.certificate import CertificateError, certificate_of
from podium.serving.health import Check
from podium.serving.log import LOG
from podium.serving.signals import stop_on_signals
from podium.serving.tls import ServingTls
from podium.telemetry import Telemetry

PORT = 5401
MAX_BODY = 256 << 20
"""Bytes: five thousand nodes of 30 kB are 150 MB."""
LAST_WORDS = 3.0
"""Seconds at the end for what was learnt and is not written yet."""
SEVERAL = 2
"""So many of the largest bodies may be on their way at once."""


class Options(NamedTuple):
    """Named as the flags are."""

    ports: Sequence[int] = (PORT,)
    """One for all agents, or one for each."""
    bind_address: str = "127.0.0.1"
    config: tuple[str, str] | None = None
    """The text of a file with plugins' arguments, and its name."""
    bind: bool = False
    max_body: int = MAX_BODY
    tls_cert_file: str = ""
    tls_private_key_file: str = ""
    cert_dir: str = ""
    client_ca_file: str = ""

    @property
    def tls(self) -> bool:
        return bool(self.tls_cert_file or self.tls_private_key_file or self.cert_dir or self.client_ca_file)


async def run(agents: Sequence[Agent], registry: Registry, access: Access | None, options: Options) -> int:
    """Serve until told to stop. Without `access` no cluster is watched."""
    stop = stop_on_signals()
    async with AsyncExitStack() as stack:
        process = Process(agents, registry, access, options, stack)
        await process.serve(stack)
        await process.work(stop)
    return 0


class Process:
    def __init__(
        self,
        agents: Sequence[Agent],
        registry: Registry,
        access: Access | None,
        options: Options,
        stack: AsyncExitStack,
    ) -> None:
        self._agents = agents
        self._options = options
        self._clock, rng = SystemClock(), random.Random()
        self._client = None if access is None else Client(access, user_agent="podium-extender", rng=rng)
        if self._client is not None:
            stack.push_async_exit(self._client)
        self._telemetry = Telemetry(
            clock=self._clock,
            rng=rng,
            nodes=self._nodes,
            pods=self._nodes_of_pods,
            api=self._client,
            report=LOG.warning,
        )
        self._experience = (
            None
            if self._client is None
            else WatchedExperience(self._client, clock=self._clock, rng=rng, report=LOG.warning)
        )
        self._engine = build_engine(
            agents,
            registry,
            clock=self._clock,
            writer=Writing(self._client if options.bind else None),
            config=options.config,
            rng=rng,
            load=self._telemetry,
            experience=self._experience,
            report=LOG.warning,
        )
        self._plugins: Mapping[str, Any] = runtime_of(self._engine).plugins
        self._informers = None if self._client is None else self._watch(self._client, rng)
        self._synced = False
        self._shared = Shared(self._engine, watched=access is not None)
        self._shared.unready = self._not_synced
        self.measures = Measures(lambda: len(self._engine.cluster.order.rows), lambda: self._not_synced() is None)
        self.ports: list[int] = []

    def _watch(self, client: Client, rng: random.Random) -> Informers:
        wanted = kinds_to_watch([type(plugin) for plugin in self._plugins.values()])
        more = [RESOURCES[kind] for agent in self._agents for kind in agent.watches]
        resources: dict[str, ApiResource[Any]] = {each.path: each for each in (*wanted, *more)}
        return Informers(
            client,
            self._engine.intake,
            custom=custom_kinds(self._engine.profiles.values()),
            resources=resources.values(),
            changed=lambda: None,
            rng=rng,
            report=LOG.warning,
        )

    def _nodes(self) -> Iterable[Node]:
        return [node for node in self._engine.cluster.nodes if node is not None]

    def _nodes_of_pods(self) -> dict[str, str]:
        cluster = self._engine.cluster
        return {placed.pod.key: cluster.names[placed.row] for placed in cluster.pods.values()}

    def _not_synced(self) -> str | None:
        if self._synced:
            return None
        missing = [] if self._informers is None else self._informers.waiting_for
        self._synced = not missing
        return f"the cluster is not known yet: waiting for {', '.join(missing)}" if missing else None

    # Serving

    async def serve(self, stack: AsyncExitStack) -> None:
        options = self._options
        tls = self._tls() if options.tls else None
        each = len(options.ports) > 1
        in_flight = InFlight(SEVERAL * options.max_body)
        for number, port in enumerate(options.ports):
            agents = [self._agents[number]] if each else self._agents
            server = Server(
                Desk(Routes(self._shared, agents), self.measures, max_body=options.max_body),
                in_flight,
                host=options.bind_address,
                port=port,
                readyz=self._checks(agents),
                tls=None if tls is None else tls.context,
                needs_certificate=bool(options.client_ca_file),
            )
            await server.start()
            stack.push_async_callback(server.stop)
            self.ports.append(server.port)
            scheme = "http" if tls is None else "https"
            names = ", ".join(agent.name for agent in agents)
            LOG.info("serving %s on %s://%s:%d", names, scheme, options.bind_address, server.port)

    def _checks(self, agents: Sequence[Agent]) -> Mapping[str, Check]:
        checks: dict[str, Check] = {"watch": self._not_synced}
        for agent in agents:
            if agent.unready is not None:
                checks[agent.name] = lambda ask=agent.unready: ask(self._plugins)  # type: ignore[misc]
        return checks

    def _tls(self) -> ServingTls:
        options = self._options
        hosts = ("localhost", options.bind_address)
        source = certificate_of(options.tls_cert_file, options.tls_private_key_file, options.cert_dir, hosts=hosts)
        authorities = authorities_of(options.client_ca_file)
        return ServingTls(source, authorities, asyncio.get_running_loop().time, LOG.warning)

    # Working

    async def work(self, stop: asyncio.Event) -> None:
        """Keep the cluster and what agents learn up to date, until told to stop."""
        tasks = [asyncio.create_task(work) for work in (stop.wait(), *self._works())]
        try:
            done, _pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            LOG.info("told to stop: finishing what is under way")
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._keep_lessons()

    async def _keep_lessons(self) -> None:
        """Write what was learnt and is not written yet."""
        if self._experience is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._experience.flush(), LAST_WORDS)

    def _works(self) -> list[Coroutine[Any, Any, Any]]:
        watching = [] if self._informers is None else [self._informers.run()]
        return [*watching, self._after_sync()]

    async def _after_sync(self) -> None:
        if self._informers is not None:
            await self._informers.synced()
        gc.collect()
        gc.freeze()  # what was listed stays: no need to look through it at every collection
        LOG.info("podium extender answers: %d nodes", len(self._engine.cluster.order.rows))
        around = Surroundings(self._plugins, self._engine, self._client, self._clock, LOG.warning)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._telemetry.run())
            if self._experience is not None:
                group.create_task(self._experience.run())
            for agent in self._agents:
                if agent.companion is not None:
                    group.create_task(agent.companion(around))


def authorities_of(file: str) -> Callable[[], bytes]:
    """The PEM of the authorities that vouch for clients, read again when the file was replaced."""
    if not file:
        return lambda: b""
    return ClientAuthorityFile(file).read


class ClientAuthorityFile:
    """What cannot be read any more stays as it was last."""

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
