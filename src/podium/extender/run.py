"""Runs an extender from start to end: opens its ports, watches and answers, stops.

The ports are open from the start, so that probes find them; questions about names are answered once the watch has
listed everything, and until then with an error that says so. At the end the ports close and what is under way ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple

from podium.client import Access, Client
from podium.client.credentials import RotatedFile
from podium.config.registry import Registry
from podium.extender.agents import Agent
from podium.extender.handler import ExtenderHandler, InFlightLimits
from podium.extender.process import ExtenderProcess, build_process
from podium.extender.routes import Routes
from podium.extender.server import ExtenderServer
from podium.kube.versions import NEWEST, VersionRules
from podium.serving.certificate import CertificateError, certificate_of
from podium.serving.environment import stop_on_signals
from podium.serving.log import LOG
from podium.serving.server_rules import ServerRules
from podium.serving.tls import ServingTls

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
