"""Hands a scheduler to a dashboard: what it may look at, and how it asks.

The dashboard is a package of its own, found by the record of the package that brings one. It never holds on to the
engine: it hands over a function, which is called where the engine may be read, and gets what that gives.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from aiohttp import web

from podium import packages
from podium.client import Access
from podium.config.registry import Registry
from podium.config.resolved import SchedulerConfig
from podium.engine.scheduler import Scheduler
from podium.framework.timer import Step
from podium.load.sources.telemetry import Followed
from podium.run.metrics import Metrics
from podium.run.pod_history import PodHistory
from podium.run.process import SchedulerProcess
from podium.run.shadow import Shadow
from podium.serving import ServingError, address
from podium.serving.browser_guard import is_loopback
from podium.serving.endpoint_access import DelegatedAccessControl
from podium.serving.endpoints import ServingOptions, build_endpoint_access
from podium.serving.listener import WebPort
from podium.serving.log import LOG

PATH: Final = "/dashboard"
"""Under which everything of a dashboard is served."""
LARGEST_REQUEST: Final = 1 << 20
MOST_CONNECTIONS: Final = 512
IDLE_TIMEOUT: Final = 32.0
GRACE: Final = 1.0
T = TypeVar("T")


class SchedulerView(NamedTuple):
    """What a dashboard sees of a scheduler."""

    engine: Scheduler
    config: SchedulerConfig
    registry: Registry
    now: float
    leads: bool = True
    history: PodHistory | None = None
    shadow: Shadow | None = None
    followed: Sequence[Followed] = ()
    """Measured load."""
    metrics: Metrics | None = None
    failures: Mapping[tuple[str, Step], int] = MappingProxyType({})
    """Failures of plugins, by plugin and extension point."""
    messages: Mapping[str, str] = MappingProxyType({})
    """What is known of pods that wait, where no condition says it."""
    objects: Sequence[Any] = ()
    """What pods are judged on; where there is nothing, the objects that the engine knows."""


class NoSchedulerError(Exception):
    """There is no scheduler to look at, or it does not answer: one sentence says so."""


class Look(Protocol):
    """Asks the scheduler."""

    async def __call__(self, take: Callable[[SchedulerView], T]) -> T:
        """What `take` makes of the scheduler, called where that may be read; raises NoSchedulerError."""


class DashboardSource(NamedTuple):
    """What a dashboard shows."""

    kind: str
    """What it is, for the user: "podium up", "podium run", "podium run --shadow" or "dump"."""
    look: Look
    names: Sequence[str] = ()
    """The command line's part that names the same source: `--from dump.yaml`, `--kubeconfig FILE`."""
    control: DelegatedAccessControl | None = None
    """Who is let in, and what each viewer sees; None: everybody who reaches it sees everything."""
    host: str = "127.0.0.1"


class Dashboard(Protocol):
    """A dashboard that is served under PATH."""

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """The answer to any request for PATH or what is below it."""


def open_dashboard(source: DashboardSource) -> Dashboard | None:
    """The dashboard of an installed package; None where no package has one."""
    target = packages.dashboard()
    if not target:
        return None
    made: Dashboard = packages.load(target)(source)
    return made


def view_of(process: SchedulerProcess, registry: Registry) -> SchedulerView:
    """What a dashboard sees of a process; to be called on its loop."""
    live = process.live
    return SchedulerView(
        live.engine,
        process.config,
        registry,
        process.clock.now(),
        process.leads(),
        live.history,
        live.shadow,
        process.telemetry.followed,
        process.metrics,
        live.plugin_failures.counts,
    )


def serves(path: str) -> bool:
    """Whether a path is the dashboard's.

    >>> serves("/dashboard/api"), serves("/dashboards")
    (True, False)
    """
    return path == PATH or path.startswith(f"{PATH}/")


class DashboardUnservedError(Exception):
    """The address cannot be listened on: one sentence says so."""


async def serve_dashboard(
    source: DashboardSource, port: int, stack: AsyncExitStack, tls: ssl.SSLContext | None = None
) -> int:
    """Serve a dashboard on a port of its own until `stack` closes; the port. Raises DashboardUnservedError."""
    dashboard = open_dashboard(source)
    if dashboard is None:
        raise DashboardUnservedError("no installed package brings a dashboard: install podium whole")
    app = web.Application(client_max_size=LARGEST_REQUEST)
    app.router.add_route("*", f"{PATH}{{rest:.*}}", dashboard.answer)
    web_port = WebPort(app, most=MOST_CONNECTIONS, idle_timeout=IDLE_TIMEOUT, grace=GRACE)
    await dashboard.start()
    stack.push_async_callback(dashboard.stop)
    try:
        found = await web_port.start(source.host, port, tls)
    except OSError as error:
        where = address(source.host, port)
        raise DashboardUnservedError(f"{where} cannot be listened on: {error.strerror or error}") from None
    stack.push_async_callback(web_port.stop)
    return found


class DashboardAddress(NamedTuple):
    """Where a dashboard is to be served."""

    host: str
    port: int


async def serve_process(
    process: SchedulerProcess,
    registry: Registry,
    where: DashboardAddress,
    serving: ServingOptions,
    access: Access,
    stack: AsyncExitStack,
) -> None:
    """Serve the dashboard of a running process until `stack` closes: on loopback to whoever reaches it, elsewhere over
    TLS to those that the API server knows. Raises ServingError where that cannot be done."""

    async def look(take: Callable[[SchedulerView], T]) -> T:
        return take(view_of(process, registry))

    kind = "podium run" if process.live.shadow is None else "podium run --shadow"
    control = tls = None
    if not is_loopback(where.host):
        allowed = build_endpoint_access(serving, access)
        control, tls = allowed.control, allowed.tls.context
        for client in allowed.clients:
            stack.push_async_exit(client)
    try:
        port = await serve_dashboard(DashboardSource(kind, look, (), control, where.host), where.port, stack, tls)
    except DashboardUnservedError as error:
        raise ServingError(f"--dashboard: {error}") from None
    scheme = "http" if tls is None else "https"
    LOG.info("serving the dashboard on %s://%s%s/", scheme, address(where.host, port), PATH)
