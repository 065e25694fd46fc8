"""Serves one port: the agents' answers, and beside them health, metrics and the version.

    GET /healthz /livez   it runs            GET /metrics   for Prometheus
    GET /readyz           it can answer      GET /version   of Podium, as text without a newline

With an authority for clients, requests to agents and for metrics need a certificate of its; health and version do
not, because probes have none.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from aiohttp import web

from podium.extender.connections import JSON_TYPES, SLOWEST_BODY, ExtenderConnection, Heads
from podium.extender.handler import ExtenderHandler, InFlightLimits, Reservation
from podium.extender.metrics import CONTENT_TYPE
from podium.extender.responses import error
from podium.extender.routes import Endpoint
from podium.extender.service import Reply
from podium.packages import version
from podium.serving import ServingError
from podium.serving.browser_guard import BrowserGuard, accepts_type
from podium.serving.health import Check, Health, HealthResults
from podium.serving.listener import BoundedListener

SWEEP = 5.0
"""Seconds between two looks at connections that have gone quiet."""
FOR_HEALTH = 24
"""Connections of a port beyond those that agents are asked over."""
CHUNK = 64 << 10
GRACE = 5.0
"""Seconds that answers under way get at the end."""
LINGER = 3.0
"""Seconds for which what is left of a refused request is read, so that the refusal arrives."""
HEADERS = {"Server": "podium", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache, private"}


class ExtenderServer:
    """One listening port."""

    def __init__(
        self,
        handler: ExtenderHandler,
        in_flight: InFlightLimits,
        *,
        host: str,
        port: int,
        readyz: Mapping[str, Check],
        tls: ssl.SSLContext | None = None,
        needs_certificate: bool = False,
    ) -> None:
        self._handler = handler
        self._in_flight = in_flight
        self._host = host
        self.port = port
        """Where it listens; any free port is taken for 0."""
        self._tls = tls
        self._needs_certificate = needs_certificate
        results = HealthResults()
        self._health = {
            f"/{name}": Health(name, checks, results)
            for name, checks in (("healthz", {}), ("livez", {}), ("readyz", readyz))
        }
        self._general = web.Server(self._handle, request_factory=self._request, access_log=None, lingering_time=LINGER)
        in_flight.others.append(lambda: len(self._general.connections))
        self._listener = BoundedListener(self._connection, in_flight.most_connections + FOR_HEALTH)
        self._connections: set[ExtenderConnection] = set()
        self._guard = BrowserGuard(host)
        self._heads = Heads(self._guard)
        self._silent: dict[asyncio.Protocol, tuple[asyncio.Transport, float]] = {}
        """Connections handed to the general server that have brought no request yet, and since when."""
        self._sweeping: asyncio.TimerHandle | None = None

    async def start(self) -> None:
        """Listen; raises ServingError where that cannot be done."""
        try:
            await self._listener.start(self._host, self.port, self._tls)
        except OSError as problem:
            where = f"--bind-address {self._host} with port {self.port}"
            raise ServingError(f"{where} cannot be listened on: {problem.strerror or problem}") from None
        self.port = self._listener.port
        self._sweeping = asyncio.get_running_loop().call_later(SWEEP, self._sweep)

    async def stop(self) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()
        self._listener.stop()
        for connection in list(self._connections):
            connection.end()
        await self._general.shutdown(GRACE)

    def _connection(self) -> asyncio.Protocol:
        return ExtenderConnection(
            self._handler,
            self._general,
            self._in_flight,
            self._connections,
            self._heads,
            self._handed_over,
            self._listener,
            needs_certificate=self._needs_certificate,
        )

    def _handed_over(self, general: asyncio.Protocol, transport: asyncio.Transport) -> None:
        self._silent[general] = transport, asyncio.get_running_loop().time()

    def _sweep(self) -> None:
        """Close connections on which nothing happens."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        for connection in list(self._connections):
            connection.close_if_quiet(now)
        for general, (transport, since) in list(self._silent.items()):
            if transport.is_closing() or now - since > SLOWEST_BODY:
                del self._silent[general]
                transport.close()
        self._sweeping = loop.call_later(SWEEP, self._sweep)

    # What does not come the short way

    def _request(self, message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
        loop = asyncio.get_running_loop()
        return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=self._handler.max_body)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self._silent.pop(request.protocol, None)
        self._listener.ends(request.protocol)  # of the head: answering begins with the body
        path, headers = request.path, request.headers
        refusal = self._guard.refusal(headers.get("Host"), headers.get("Origin"), headers.get("Sec-Fetch-Site"))
        if refusal is not None:
            return _response(self._handler.forbidden(refusal))
        endpoint = self._handler.find(path)
        if endpoint is None:
            return self._other(request, path)
        if self._needs_certificate and not self._has_certificate(request):
            return _response(Reply(401, error("show a client certificate")))
        if request.method != "POST":
            response = _response(self._handler.wrong_method(request.method, path))
            response.headers["Allow"] = "POST"
            return response
        if not accepts_type(headers.get("Content-Type"), JSON_TYPES):
            return _response(self._handler.wrong_type(headers.get("Content-Type", "")))
        if (length := request.content_length) is not None and length > self._handler.max_body:
            return _response(self._handler.too_large(endpoint, length))
        if self._in_flight.crowded or not self._in_flight.has_room_for(length or 0):
            return _response(self._handler.busy(endpoint))
        with self._in_flight.reserved(length or 0) as reservation:
            response = _response(await self._answer(request, endpoint, reservation))
            with suppress(ConnectionError):  # the client is gone
                await response.prepare(request)
                await response.write_eof()
            return response

    async def _answer(self, request: web.BaseRequest, endpoint: Endpoint, reservation: Reservation) -> Reply:
        try:
            async with asyncio.timeout(SLOWEST_BODY):
                await _go_ahead(request)
                body = bytearray()
                async for chunk in request.content.iter_chunked(CHUNK):
                    body += chunk
                    if len(body) > self._handler.max_body:
                        return self._handler.too_large(endpoint, None)
                    if not reservation.covers(len(body)):
                        return self._handler.busy(endpoint)
        except TimeoutError:
            return Reply(408, error(f"the request did not come within {SLOWEST_BODY:.0f} seconds"))
        except (web.RequestPayloadError, ConnectionError, ValueError) as problem:
            return Reply(400, error(f"the request cannot be read: {problem}"))
        self._listener.begins(request.protocol)
        try:
            return await self._handler.answer(endpoint, bytes(body))
        finally:
            self._listener.ends(request.protocol)

    def _other(self, request: web.BaseRequest, path: str) -> web.Response:
        show: Callable[[], web.Response] | None = None
        if path.rpartition("/")[0] in self._health or path in self._health:
            show = partial(self._show_health, request, path)
        elif path == "/version":
            show = partial(web.Response, text=version(), headers=HEADERS)
        elif path == "/metrics":
            if self._needs_certificate and not self._has_certificate(request):
                return _response(Reply(401, error("show a client certificate")))
            show = self._show_metrics
        if show is None:
            return _response(self._handler.nowhere(path))
        if request.method not in ("GET", "HEAD"):
            return web.Response(status=405, text="Method Not Allowed\n", headers={**HEADERS, "Allow": "GET"})
        return show()

    def _show_health(self, request: web.BaseRequest, path: str) -> web.Response:
        health = self._health.get(path)
        if health is not None:
            query = request.query
            summary = health.summary(verbose="verbose" in query, exclude=query.getall("exclude", []))
            return web.Response(status=summary.status, text=summary.text, headers=HEADERS)
        prefix, _, check = path.rpartition("/")
        single = self._health[prefix].single(check)
        if single is None:
            return web.Response(status=404, text="404 page not found\n", headers=HEADERS)
        return web.Response(status=single.status, text=single.text, headers=HEADERS)

    def _show_metrics(self) -> web.Response:
        return web.Response(body=self._handler.metrics.render(), headers={**HEADERS, "Content-Type": CONTENT_TYPE})

    @staticmethod
    def _has_certificate(request: web.BaseRequest) -> bool:
        return bool(request.transport is not None and request.transport.get_extra_info("peercert"))


async def _go_ahead(request: web.BaseRequest) -> None:
    """Let a client go on that waits for it (curl does, before it sends much)."""
    if request.headers.get("Expect", "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0


def _response(reply: Reply) -> web.Response:
    body = reply.body if isinstance(reply.body, bytes) else b"".join(reply.body)
    return web.Response(status=reply.status, body=body, headers=HEADERS, content_type="application/json")
