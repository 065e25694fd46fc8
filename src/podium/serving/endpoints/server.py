"""Serves the endpoints of a running process, on kube-scheduler's paths, over HTTPS.

    /healthz /livez /readyz   is it well?
    /metrics                  what it does, for Prometheus
    /metrics/slis             how its health checks went
    /metrics/resources        what the pods it knows request; empty unless this process leads
    /configz                  the configuration in force
    /queuez                   the pods that wait for the scheduler
    /flagz /statusz           the options in force; version, start and paths

Every request passes access control first. They are answered on the process's own event loop, so nothing here may take
long: the one answer that grows with the cluster is written in pieces.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec
from aiohttp import web
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest

from podium.packages import version
from podium.serving import ServingError
from podium.serving.endpoints.debug_pages import Page, flags_page, status_page
from podium.serving.families import Collector
from podium.serving.health import Check, Health, HealthAnswer, HealthResults
from podium.serving.listener import Handler, WebPort
from podium.serving.process_metrics import CONTENT_TYPE, ProcessMetrics

PORT = 10259
LARGEST_REQUEST = 64 << 10
IDLE_TIMEOUT = 32.0
"""Seconds in which a connection must bring the whole head of its next request, or it is closed: as long as
kube-scheduler gives a head."""
MOST_CONNECTIONS = 256
GRACE = 1.0
"""Seconds that answers under way get at the end."""

ON_EVERYTHING = {"Cache-Control": "no-cache, private", "X-Content-Type-Options": "nosniff", "Server": "podium"}
"""Headers of every answer; software and versions are not shown."""

Resources = Callable[[], AsyncIterator[bytes]]


class AccessControl(Protocol):
    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def refusal(self, request: web.Request) -> web.Response | None:
        """The answer to a request that must not be served; None when it may."""


@dataclass(frozen=True, kw_only=True)
class Endpoints:
    """What is shown. Without `resources` and `queue` there are no such paths."""

    metrics: ProcessMetrics
    configuration: Callable[[], Mapping[str, Any]]
    """What `/configz` shows."""
    readyz: Mapping[str, Check]
    """The checks by name; so are those of `healthz`."""
    healthz: Mapping[str, Check] = field(default_factory=dict)
    resources: Resources | None = None
    """Writes `/metrics/resources`."""
    queue: Callable[[Mapping[str, str]], Mapping[str, Any]] | None = None
    """What `/queuez` shows for the parameters of a request."""
    flags: Mapping[str, str] | None = None
    """What `/flagz` shows."""


class EndpointServer:
    """Serves endpoints. Without `tls` it speaks plain HTTP, which is for tests and for loopback."""

    def __init__(
        self,
        shown: Endpoints,
        access: AccessControl,
        *,
        tls: ssl.SSLContext | None = None,
        host: str = "0.0.0.0",
        port: int = PORT,
        idle_timeout: float = IDLE_TIMEOUT,
    ) -> None:
        self._shown = shown
        self._access = access
        self._tls = tls
        self._host = host
        self._idle_timeout = idle_timeout
        self.port = port
        """Where it listens; any free port is taken for 0."""
        results = HealthResults()
        self._health = [Health("healthz", shown.healthz, results), Health("livez", {}, results)]
        self._health.append(Health("readyz", shown.readyz, results))
        self._slis = CollectorRegistry()
        ProcessCollector(registry=self._slis)
        self._slis.register(Collector(results.families))
        self._served: WebPort | None = None

    async def start(self) -> None:
        """Listen; raises ServingError where that cannot be done."""
        await self._access.start()
        self._served = WebPort(self.application(), most=MOST_CONNECTIONS, idle_timeout=self._idle_timeout, grace=GRACE)
        try:
            self.port = await self._served.start(self._host, self.port, self._tls)
        except OSError as error:
            await self.stop()
            where = f"--bind-address {self._host} with --secure-port {self.port}"
            raise ServingError(f"{where} cannot be listened on: {error.strerror or error}") from None

    async def stop(self) -> None:
        if self._served is not None:
            await self._served.stop()
        await self._access.stop()

    def application(self) -> web.Application:
        app = web.Application(middlewares=[self._guard], client_max_size=LARGEST_REQUEST)
        for health in self._health:
            app.router.add_get(f"/{health.name}", _summary_of(health))
            app.router.add_get(f"/{health.name}/{{check}}", _single_of(health))
        app.router.add_get("/metrics", self._show_metrics)
        app.router.add_get("/metrics/slis", self._show_slis)
        app.router.add_get("/metrics/resources", self._show_resources)
        app.router.add_get("/configz", _answer_of(lambda _request: _json(self._shown.configuration())))
        if (queue := self._shown.queue) is not None:
            app.router.add_get("/queuez", _answer_of(lambda request: _json(queue(request.query))))
        if self._shown.flags is not None:
            app.router.add_get("/flagz", _answer_of(flags_page(self._shown.flags)))
        paths = [resource.canonical for resource in app.router.resources()]
        app.router.add_get("/statusz", _answer_of(status_page(version(), paths)))
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        response: web.StreamResponse | None = await self._access.refusal(request)
        if response is None:
            try:
                response = await handler(request)
            except web.HTTPNotFound:
                response = not_found()
            except web.HTTPException as error:
                response = web.Response(status=error.status, text=f"{error.reason}\n", headers=error.headers)
        if not response.prepared:
            response.headers.update(ON_EVERYTHING)
        return response

    async def _show_metrics(self, _request: web.Request) -> web.Response:
        return web.Response(body=self._shown.metrics.render(), headers={"Content-Type": CONTENT_TYPE})

    async def _show_slis(self, _request: web.Request) -> web.Response:
        return web.Response(body=generate_latest(self._slis), headers={"Content-Type": CONTENT_TYPE})

    async def _show_resources(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": CONTENT_TYPE, **ON_EVERYTHING})
        await response.prepare(request)
        if self._shown.resources is not None:
            async with contextlib.aclosing(self._shown.resources()) as pieces:  # type: ignore[type-var]
                async for piece in pieces:
                    await response.write(piece)
                    await asyncio.sleep(0)  # the scheduler goes on in between
        await response.write_eof()
        return response


def not_found() -> web.Response:
    return web.Response(status=404, text="404 page not found\n")


def _json(value: Mapping[str, Any]) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), content_type="application/json")


def _answer_of(page: Page) -> Handler:
    async def handle(request: web.Request) -> web.Response:
        return page(request)

    return handle


def _summary_of(health: Health) -> Handler:
    async def handle(request: web.Request) -> web.Response:
        return _text(health.summary(verbose="verbose" in request.query, exclude=request.query.getall("exclude", [])))

    return handle


def _single_of(health: Health) -> Handler:
    async def handle(request: web.Request) -> web.Response:
        answer = health.single(request.match_info["check"])
        return not_found() if answer is None else _text(answer)

    return handle


def _text(answer: HealthAnswer) -> web.Response:
    return web.Response(status=answer.status, text=answer.text)
