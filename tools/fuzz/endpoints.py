"""Starts every server in this process and sends it hostile requests; none may fail, hang, or answer 500."""

from __future__ import annotations

import asyncio
import logging
import random
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from random import Random
from typing import NamedTuple

from aiohttp.http_exceptions import HttpProcessingError

from podium.framework import SystemClock
from podium.serving.plugin_pages import PageServer
from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.http.server import ApiServer
from podium_plugins.qos.ledger import QosLedger
from podium_plugins.qos.page import QosSource, controller_rows, qos_page, slot_rows
from tests.podium.extender.questions import World, node
from tests.podium.extender.questions import served as served_extender
from tests.podium.serving.servings import served as served_endpoints
from tools.fuzz.mutation import mutated
from tools.fuzz.readers import ARGS, BINDING, MANIFESTS, MERGE, NODE, PATCH, POD, PROTOBUF
from tools.kit.builders import make_pod

LOOPBACK = "127.0.0.1"
HALF = 100
SECONDS = 20.0
"""Within which an answer to a whole request must come."""

JSON, YAML, PROTO = "application/json", "application/yaml", "application/vnd.kubernetes.protobuf"
PODS, NODES = "/api/v1/namespaces/default/pods", "/api/v1/nodes"
LIST = b'{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"u"},"propagationPolicy":"Foreground"}'
CRD = b"""{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
"metadata":{"name":"ws.example.com"},"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"ws","singular":"w","kind":"W","listKind":"WList"},
"versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},"schema":{"openAPIV3Schema":{
"type":"object","properties":{"spec":{"type":"object","properties":{"a":{"type":"string","pattern":"^a+$"}}}}}}}]}}"""


class Sent(NamedTuple):
    """A request that the server understands."""

    method: str
    path: str
    body: bytes = b""
    content_type: str = JSON


class Endpoint(NamedTuple):
    """A server, what it understands, and where to see that it lives."""

    start: Callable[[], AbstractAsyncContextManager[int]]
    requests: Sequence[Sent]
    health: str
    may_answer_500: bool = False
    """As kube-apiserver does for some of what is invalid; what fails inside is logged with its exception."""


@asynccontextmanager
async def _api() -> AsyncIterator[int]:
    server = ApiServer(EmbeddedApi(clock=SystemClock(), rng=random.Random(1)))
    await server.start()
    try:
        yield int(server.url.rpartition(":")[2])
    finally:
        await server.stop()


@asynccontextmanager
async def _extender() -> AsyncIterator[int]:
    agents = (
        "safe",
        "congestion",
        "pigeon",
        "NodeAffinity",
        "NodeResourcesFit",
        "InterPodAffinity",
        "PodTopologySpread",
    )
    world = World(*agents, nodes=[node("n1"), node("n2", {"congestion-factor": "5"})])
    async with served_extender(world) as (server, _asking):
        yield server.port


@asynccontextmanager
async def _endpoints() -> AsyncIterator[int]:
    async with served_endpoints() as url:
        yield int(url.rpartition(":")[2])


@asynccontextmanager
async def _qos() -> AsyncIterator[int]:
    ledger = QosLedger()
    pod = make_pod("a", metadata={"annotations": {"controller": "web\x1b[2J\n  b", "slo": "0.5"}})
    ledger.observe(None, pod, 0.0)
    source = QosSource(lambda: controller_rows(ledger, 9.0), lambda: slot_rows(ledger, 9.0), lambda: {"gini": 0.5})
    page = PageServer(qos_page(source), port=0)
    assert await page.start() is None
    try:
        yield page.port
    finally:
        await page.stop()


ENDPOINTS: dict[str, Endpoint] = {
    "the embedded API": Endpoint(
        _api,
        [
            *(Sent("POST", path, body) for path, body in ((PODS, POD), (NODES, NODE))),
            Sent("POST", PODS, MANIFESTS, YAML),
            Sent("POST", PODS, PROTOBUF, PROTO),
            Sent("POST", f"{PODS}?dryRun=All&fieldValidation=Strict", POD),
            Sent("POST", f"{PODS}/web/binding", b'{"kind":"Binding","metadata":{"name":"web"},"target":{"name":"n1"}}'),
            Sent("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", CRD),
            Sent("POST", "/apis/example.com/v1/namespaces/default/ws", b'{"metadata":{"name":"w"},"spec":{"a":"aa"}}'),
            Sent("PUT", f"{NODES}/n1", NODE),
            Sent("PUT", f"{NODES}/n1/status", NODE),
            Sent("PATCH", f"{NODES}/n1", PATCH, "application/json-patch+json"),
            Sent("PATCH", f"{NODES}/n1", MERGE, "application/merge-patch+json"),
            Sent("PATCH", f"{NODES}/n1", MERGE, "application/strategic-merge-patch+json"),
            Sent("PATCH", f"{NODES}/n1?fieldManager=f&force=true", NODE, "application/apply-patch+yaml"),
            Sent("GET", f"{PODS}?labelSelector=app%3Dweb&fieldSelector=spec.nodeName%3Dn1&limit=5&resourceVersion=0"),
            Sent("GET", f"{PODS}?watch=1&timeoutSeconds=0&allowWatchBookmarks=true"),
            Sent("GET", f"{NODES}/n1"),
            Sent("GET", "/openapi/v3"),
            Sent("GET", "/apis"),
            Sent("DELETE", f"{NODES}/n1", LIST),
            Sent("DELETE", f"{PODS}?labelSelector=a%3Db"),
        ],
        "/readyz",
        may_answer_500=True,
    ),
    "the extender": Endpoint(
        _extender,
        [
            Sent("POST", "/safe/filter", ARGS),
            Sent("POST", "/safe+congestion/prioritize", ARGS),
            Sent("POST", "/NodeAffinity/filter", ARGS),
            Sent("POST", "/InterPodAffinity/filter", ARGS),
            Sent("POST", "/PodTopologySpread/prioritize", ARGS),
            Sent("POST", "/pigeon/prioritize", b'{"Pod":' + POD + b',"Nodes":{"items":[' + NODE + b"]}}"),
            Sent("POST", "/scheduler/bind", BINDING),
            Sent("POST", "/NodeResourcesFit/preempt", b'{"Pod":' + POD + b',"NodeNameToVictims":{"n1":{"Pods":[]}}}'),
            Sent("GET", "/metrics"),
            Sent("GET", "/readyz?verbose&exclude=watch"),
        ],
        "/healthz",
    ),
    "the endpoints of run": Endpoint(
        _endpoints,
        [Sent("GET", path) for path in ("/metrics", "/healthz", "/readyz?verbose", "/livez/ping", "/configz")],
        "/healthz",
    ),
    "the QoS page": Endpoint(_qos, [Sent("GET", path) for path in ("/", "/?layout=slots", "/report")], "/"),
}  # fmt: skip


class ServerFailedError(AssertionError):
    """A server failed on an input; `sent` is what was sent to it."""

    def __init__(self, problem: str, sent: bytes) -> None:
        super().__init__(problem)
        self.sent = sent


async def attack(endpoint: Endpoint, rng: Random, *, until: Callable[[int], bool]) -> int:
    """Send requests until that holds of their number; how many were sent."""
    count = 0
    async with (
        _watched_for_failures() as failures,
        endpoint.start() as port,
        _HalfRequests(endpoint, rng, port) as half,
    ):
        while not until(count):
            sent, whole = hostile(endpoint, rng, port)
            answer = await _exchange(port, sent, SECONDS if whole else 0.2)
            if whole and not answer and b"watch" not in sent[:5000]:
                raise ServerFailedError("did not answer", sent)
            _check(endpoint, answer, failures, sent)
            count += 1
            if count % 50 == 0:
                await half.open()
                alive = await _exchange(port, _request(Sent("GET", endpoint.health), port), SECONDS)
                if b" 200 " not in alive[:20]:
                    raise ServerFailedError(f"is not well: {alive[:500]!r}", sent)
    return count


async def attack_with(endpoint: Endpoint, sent: bytes, patience: float = SECONDS) -> bytes:
    """What the server answers to one input; it must not fail, and live on."""
    async with _watched_for_failures() as failures, endpoint.start() as port:
        answer = await _exchange(port, sent, patience)
        alive = await _exchange(port, _request(Sent("GET", endpoint.health), port), SECONDS)
        assert b" 200 " in alive[:20]
        _check(endpoint, answer, failures, sent)
    return answer


@asynccontextmanager
async def _watched_for_failures() -> AsyncIterator[_Failures]:
    failures = _Failures()
    logging.getLogger().addHandler(failures)
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _loop, context: failures.found.append(str(context.get("exception") or context)))
    try:
        yield failures
    finally:
        logging.getLogger().removeHandler(failures)


def _check(endpoint: Endpoint, answer: bytes, failures: _Failures, sent: bytes) -> None:
    status = re.match(rb"HTTP/1\.[01] (\d+)", answer)
    if status is not None and int(status[1]) == 500 and not endpoint.may_answer_500:
        raise ServerFailedError(f"answered {answer[:1500]!r}", sent)
    if failures.found:
        raise ServerFailedError(failures.found[0], sent)


def hostile(endpoint: Endpoint, rng: Random, port: int) -> tuple[bytes, bool]:
    """A request with something wrong in its body, its path, or anywhere; and whether it is a whole one."""
    sent = rng.choice(endpoint.requests)
    match rng.randrange(4):
        case 0 | 1:
            bodies = [each.body for each in endpoint.requests if each.body] or [b""]
            sent = sent._replace(body=mutated(rng, [sent.body, rng.choice(bodies)]))
            if rng.random() < 0.15:
                sent = sent._replace(
                    content_type=rng.choice((JSON, YAML, PROTO, "application/apply-patch+yaml", "", "x"))
                )
        case 2:
            path = mutated(rng, [sent.path.encode()])[:4000].replace(b"\r", b"").replace(b"\n", b"").replace(b" ", b"+")
            sent = sent._replace(
                path=path.decode("latin-1") or "/", method=rng.choice((sent.method, "PUT", "OPTIONS", "X"))
            )
        case 3:
            return mutated(rng, [_request(sent, port)]), False
    return _request(sent, port), True


def _request(sent: Sent, port: int) -> bytes:
    head = [
        f"{sent.method} {sent.path} HTTP/1.1",
        f"Host: {LOOPBACK}:{port}",
        f"Content-Type: {sent.content_type}",
        f"Content-Length: {len(sent.body)}",
        "Connection: close",
    ]
    return "\r\n".join(head).encode("latin-1", "replace") + b"\r\n\r\n" + sent.body


async def _exchange(port: int, data: bytes, patience: float) -> bytes:
    """The beginning of what comes back within so many seconds."""
    reader, writer = await asyncio.open_connection(LOOPBACK, port)
    answer = b""
    try:
        with suppress(ConnectionError):
            writer.write(data)
            async with asyncio.timeout(patience):
                answer = await reader.read(1 << 16)
    except TimeoutError:
        pass
    finally:
        writer.close()
        with suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(1.0):
                await writer.wait_closed()
    return answer


class _HalfRequests:
    """Connections that bring a part of a request and no more, and stay open: more than some servers have room for."""

    def __init__(self, endpoint: Endpoint, rng: Random, port: int) -> None:
        self._endpoint = endpoint
        self._rng = rng
        self._port = port
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> _HalfRequests:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def open(self, count: int = HALF) -> None:
        await self._stack.aclose()
        for _ in range(count):
            request = _request(self._rng.choice(self._endpoint.requests), self._port)
            _, writer = await asyncio.open_connection(LOOPBACK, self._port)
            self._stack.callback(writer.close)
            with suppress(ConnectionError):
                writer.write(request[: self._rng.randrange(min(len(request), 200))])


class _Failures(logging.Handler):
    """Exceptions that were logged."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and not isinstance(record.exc_info[1], HttpProcessingError):  # aiohttp's word for no HTTP
            self.found.append(self.format(record))


def run_attack(name: str, rng: Random, *, until: Callable[[int], bool]) -> int:
    return asyncio.run(attack(ENDPOINTS[name], rng, until=until))
