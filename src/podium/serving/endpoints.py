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

Also answers `/flagz` (the options in force) and `/statusz` (version, start, paths), as Kubernetes' components do.

Without an `Accept`, and for curl's `*/*`, both are plain text for people. A program asks for an object and names its
kind: `Accept: application/json;as=Statusz;v=v1beta1;g=config.k8s.io` (also `application/yaml`, and `v1alpha1`, which is
deprecated). Anything else is refused with 406, as by kube-scheduler.

Also builds TLS and access control of the endpoints from the command line's options.

The defaults are kube-scheduler's: HTTPS on port 10259 with a certificate made on the spot, health for everybody, the
rest for users that the API server knows and allows.
"""

from __future__ import annotations

import asyncio
import contextlib
import platform
import ssl
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, Protocol

import msgspec
import yaml
from aiohttp import web
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest

from podium.client import Access, Client, load_access
from podium.framework.clock import SystemClock
from podium.packages import version
from podium.serving import ServingError
from podium.serving.certificate import certificate_of
from podium.serving.client_certificates import ClientAuthorities
from podium.serving.endpoint_access import ALWAYS_ALLOWED, DelegatedAccessControl
from podium.serving.families import Collector
from podium.serving.health import Check, Health, HealthAnswer, HealthResults
from podium.serving.listener import Handler, WebPort
from podium.serving.log import LOG
from podium.serving.process_metrics import CONTENT_TYPE, ProcessMetrics
from podium.serving.tls import MIN_VERSIONS, ServingTls

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
COMPONENT: Final = "podium"
GROUP: Final = "config.k8s.io"
VERSIONS: Final = ("v1beta1", "v1alpha1")
_HEADER: Final = (
    "\n{component} {page}\n"
    "Warning: for people who look into a process: the form may change, so no program should read it.\n\n"
)
_ACCEPTED: Final = "only the following media types are accepted: application/json, application/yaml, text/plain"

Page = Callable[[web.Request], web.Response]
REVIEWS_PER_SECOND = 200
"""How often a second the API server is asked at most about requests to the endpoints."""


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


def flags_page(flags: Mapping[str, str], component: str = COMPONENT) -> Page:
    """`/flagz`: every option of the command line with its value."""

    def answer(request: web.Request) -> web.Response:
        lines = "".join(f"{name}={value}\n" for name, value in sorted(flags.items()))
        return _negotiated(request, "Flagz", component, lines, {"flags": dict(sorted(flags.items()))})

    return answer


def status_page(version: str, paths: Iterable[str], component: str = COMPONENT) -> Page:
    """`/statusz`: since when it runs, what it is, and where else to look."""
    clock = SystemClock()
    started = clock.now()
    folders = sorted({f"/{path.split('/')[1]}" for path in paths})

    def answer(request: web.Request) -> web.Response:
        up = max(0, int(clock.now() - started))
        start = datetime.fromtimestamp(int(started), UTC)
        lines = (
            f"Started: {start:%a %b %e %H:%M:%S UTC %Y}\n"
            f"Up: {up // 3600} hr {up // 60 % 60:02} min {up % 60:02} sec\n"
            f"Python version: {platform.python_version()}\n"
            f"Binary version: {version}\n"
            f"Paths: {' '.join(folders)}\n"
        )
        fields = {
            "startTime": f"{start:%Y-%m-%dT%H:%M:%SZ}",
            "uptimeSeconds": up,
            "goVersion": "",  # the field must be there; Podium has no Go in it
            "binaryVersion": version,
            "paths": folders,
        }
        return _negotiated(request, "Statusz", component, lines, fields)

    return answer


def _negotiated(request: web.Request, kind: str, component: str, lines: str, fields: Mapping[str, Any]) -> web.Response:
    """The answer in the first form of the `Accept` header that there is."""
    for clause in request.headers.get("Accept", "").split(","):
        media, *rest = (part.strip() for part in clause.split(";"))
        parameters = dict(part.split("=", 1) for part in rest if "=" in part)
        if media in ("", "*/*", "text/*", "text/plain") and "as" not in parameters:
            text = _HEADER.format(component=component, page=kind.lower()) + lines
            return web.Response(text=text, content_type="text/plain", charset="utf-8")
        version = parameters.get("v", "")
        if (parameters.get("as"), parameters.get("g"), version in VERSIONS) != (kind, GROUP, True):
            continue
        value = {"kind": kind, "apiVersion": f"{GROUP}/{version}", "metadata": {"name": component}, **fields}
        response = _structured(media, value)
        if response is not None:
            if version != VERSIONS[0]:
                page = kind.lower()
                response.headers["Warning"] = (
                    f'299 - "This version of the {page} endpoint is deprecated. Please use a newer version."'
                )
            return response
    status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": _ACCEPTED}
    body = msgspec.json.encode({**status, "reason": "NotAcceptable", "code": 406}) + b"\n"
    return web.Response(status=406, body=body, content_type="application/json")


def _structured(media: str, value: Mapping[str, Any]) -> web.Response | None:
    if media in ("application/json", "application/*", "*/*"):
        return web.Response(body=msgspec.json.encode(value) + b"\n", content_type="application/json")
    if media == "application/yaml":
        return web.Response(text=yaml.safe_dump(value, sort_keys=True), content_type="application/yaml")
    return None


class ServingOptions(NamedTuple):
    """Named as the flags are."""

    bind_address: str = "0.0.0.0"
    secure_port: int = 10259
    """0: nothing is served."""
    tls_cert_file: str = ""
    tls_private_key_file: str = ""
    cert_dir: str = ""
    client_ca_file: str = ""
    authentication_kubeconfig: str = ""
    authorization_kubeconfig: str = ""
    authentication_skip_lookup: bool = False
    authentication_tolerate_lookup_failure: bool = True
    authorization_always_allow_paths: tuple[str, ...] = tuple(ALWAYS_ALLOWED)
    flags: Mapping[str, str] | None = None
    """All that was typed, and the defaults of what was not, for `/flagz`."""
    tls_min_version: str = ""


class EndpointAccess(NamedTuple):
    """Who is let in, under which certificate, and the clients that ask the API server about it."""

    control: DelegatedAccessControl
    tls: ServingTls
    clients: tuple[Client, ...]


def build_endpoint_access(options: ServingOptions, access: Access) -> EndpointAccess:
    """Raises CertificateError or AccessError for files that cannot be used."""
    clients: list[Client] = []

    def client_of(kubeconfig: str) -> Client:
        clients.append(
            Client(
                load_access(kubeconfig) if kubeconfig else access, qps=REVIEWS_PER_SECOND, burst=2 * REVIEWS_PER_SECOND
            )
        )
        return clients[-1]

    authentication = client_of(options.authentication_kubeconfig)
    authorities = ClientAuthorities(
        None if options.authentication_skip_lookup else authentication, options.client_ca_file, LOG.warning
    )
    control = DelegatedAccessControl(
        authentication,
        client_of(options.authorization_kubeconfig),
        authorities,
        always_allow_paths=options.authorization_always_allow_paths,
        tolerate_lookup_failure=options.authentication_tolerate_lookup_failure,
        report=LOG.warning,
    )
    source = certificate_of(options.tls_cert_file, options.tls_private_key_file, options.cert_dir)
    now: Callable[[], float] = asyncio.get_running_loop().time
    least = MIN_VERSIONS[options.tls_min_version or "VersionTLS12"]
    tls = ServingTls(source, lambda: authorities.all(now()), now, LOG.warning, least)
    return EndpointAccess(control, tls, tuple(clients))
