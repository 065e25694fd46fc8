"""Questions as kube-scheduler asks them, and an extender in this process to ask."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import aiohttp
import msgspec

from podium.extender.agents import choose
from podium.extender.assembly import build_engine, runtime_of
from podium.extender.binding import BindingWriter
from podium.extender.handler import ExtenderHandler, InFlightLimits
from podium.extender.metrics import ExtenderMetrics
from podium.extender.routes import Routes
from podium.extender.server import ExtenderServer
from podium.extender.service import AgentContext, Reply
from podium.framework import ManualClock
from podium.framework.plugin import Plugin
from podium.framework.pod_outcomes import PodOutcomes
from podium.kube import Node, Pod
from podium.load.readings import LoadSource
from podium.plugins import load_registry
from tools.kit.builders import make_pod

Obj = dict[str, Any]

LOOPBACK = "127.0.0.1"
MAX_BODY = 1 << 20


def node(name: str, annotations: Mapping[str, str] | None = None, **allocatable: str) -> Obj:
    """A node as the API writes it."""
    return {
        "metadata": {"name": name, "annotations": dict(annotations or {})},
        "status": {"allocatable": allocatable or {"cpu": "4", "memory": "8Gi", "pods": "110"}},
    }


def as_object(value: Obj) -> Node:
    return msgspec.convert(value, Node)


def args(pod: Pod | Obj, *, names: Sequence[str] | None = None, nodes: Sequence[Obj] | None = None) -> bytes:
    """The body of filter and prioritize, in kube-scheduler's own spelling."""
    text = msgspec.json.encode(pod)
    listed = b"null" if nodes is None else b'{"metadata":{},"items":%b}' % msgspec.json.encode(nodes)
    return b'{"Pod":%b,"Nodes":%b,"NodeNames":%b}' % (text, listed, msgspec.json.encode(names))


def json_request(url: str, body: bytes | None) -> urllib.request.Request:
    return urllib.request.Request(url, body, {"Content-Type": "application/json"})


class World:
    """Agents on a cluster that is watched (nodes given here), or not (None)."""

    def __init__(
        self,
        *agents: str,
        nodes: Iterable[Obj] | None = (),
        extra: Iterable[type[Plugin]] = (),
        config: str = "",
        pod_outcomes: PodOutcomes | None = None,
        load: LoadSource | None = None,
    ) -> None:
        registry = {**load_registry(), **{plugin.name: plugin for plugin in extra}}
        chosen = choose(agents, registry)
        self.engine = build_engine(
            chosen,
            registry,
            clock=ManualClock(),
            writer=BindingWriter(None),
            config=(config, "agents.yaml") if config else None,
            pod_outcomes=pod_outcomes,
            load=load,
        )
        self.cluster = self.engine.cluster
        self.engine.load(map(as_object, nodes or ()))
        runtime = runtime_of(self.engine)
        self.shared = AgentContext(self.engine, watched=nodes is not None)
        self.routes = Routes(self.shared, chosen)
        self.plugins = runtime.plugins

    def reply(self, path: str, body: bytes) -> Reply:
        endpoint = self.routes.find(path)
        assert endpoint is not None, path
        reply = endpoint.answer(body)
        if isinstance(reply, Reply):
            return reply

        async def main() -> Reply:
            assert not isinstance(reply, Reply)
            return await reply

        return asyncio.run(main())

    def ask(self, path: str, body: bytes) -> Any:
        """The answer, decoded; it must be a good one."""
        reply = self.reply(path, body)
        assert reply.status == 200, reply
        return decoded(reply)

    def points(self, path: str, pod: Pod | Obj | None = None, **given: Any) -> dict[str, int]:
        return {each["Host"]: each["Score"] for each in self.ask(path, args(pod or make_pod(), **given))}


def decoded(reply: Reply) -> Any:
    return json.loads(reply.body if isinstance(reply.body, bytes) else b"".join(reply.body))


class Answer(NamedTuple):
    status: int
    body: bytes
    headers: Mapping[str, str]

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Asking:
    """A client of a server that runs in the same loop."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self.url = url
        self._session = session

    async def post(self, path: str, body: Any, **options: Any) -> Answer:
        options.setdefault("headers", {"Content-Type": "application/json"})
        return await self.request("POST", path, data=body, **options)

    async def get(self, path: str) -> Answer:
        return await self.request("GET", path)

    async def request(self, method: str, path: str, **options: Any) -> Answer:
        async with self._session.request(method, f"{self.url}{path}", allow_redirects=False, **options) as response:
            return Answer(response.status, await response.read(), response.headers)


@asynccontextmanager
async def served(
    world: World, *, max_body: int = MAX_BODY, **options: Any
) -> AsyncIterator[tuple[ExtenderServer, Asking]]:
    """A world behind a port."""
    cache_errors = options.pop("cache_errors", lambda: 0)
    nodes, synced = (lambda: len(world.cluster.order.rows)), (lambda: world.shared.unready() is None)
    metrics = ExtenderMetrics(nodes, synced, cache_errors)
    handler = ExtenderHandler(world.routes, metrics, max_body=max_body)
    options.setdefault("readyz", {"watch": world.shared.unready})
    in_flight = options.pop("in_flight", None) or InFlightLimits(2 * max_body)
    server = ExtenderServer(handler, in_flight, host=LOOPBACK, port=options.pop("port", 0), **options)
    await server.start()
    try:
        async with aiohttp.ClientSession() as session:
            yield server, Asking(f"http://{LOOPBACK}:{server.port}", session)
    finally:
        await server.stop()
