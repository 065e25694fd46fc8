"""A measuring server on loopback that says what a test puts into it, or misbehaves the way the test says."""

from __future__ import annotations

import asyncio
import json
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from aiohttp import web

from podium.kube import Node
from tools.kit.builders import build

Reply = Callable[[web.Request], Awaitable[web.StreamResponse]]


def node(name: str, *addresses: str, cpu: str = "4", memory: str = "8Gi", **annotations: str) -> Node:
    return build(
        Node,
        {
            "metadata": {"name": name, "annotations": annotations},
            "status": {
                "addresses": [{"type": "InternalIP", "address": each} for each in addresses],
                "capacity": {"cpu": cpu, "memory": memory},
            },
        },
    )


def vector(*samples: tuple[Mapping[str, str], str]) -> dict[str, Any]:
    """Prometheus' answer with these samples: labels and the value as it writes it."""
    result = [{"metric": dict(labels), "value": [1700000000.5, value]} for labels, value in samples]
    return {"status": "success", "data": {"resultType": "vector", "result": result}}


def watched(nodes: Mapping[str, Sequence[tuple[str, str, float]]], end: int = 1700000000) -> dict[str, Any]:
    """load-watcher's answer: for each node its metrics as (type, operator, value)."""
    metrics = {
        name: {"metrics": [{"name": "", "type": t, "operator": o, "rollup": "15m", "value": v} for t, o, v in each]}
        for name, each in nodes.items()
    }
    window = {"duration": "15m", "start": end - 900, "end": end}
    return {"timestamp": end + 5, "window": window, "source": "x", "data": {"NodeMetricsMap": metrics}}


class StandIn:
    """Answers every request by `reply`; what was asked is in `requests` and `forms`."""

    def __init__(self) -> None:
        self.requests: list[web.Request] = []
        self.forms: list[dict[str, str]] = []
        self.url = ""
        self.says({})

    def says(self, body: Any, status: int = 200) -> None:
        async def reply(_request: web.Request) -> web.StreamResponse:
            text = body if isinstance(body, str) else json.dumps(body)
            return web.Response(text=text, status=status, content_type="application/json")

        self.reply: Reply = reply

    def answers(self, by_query: Mapping[str, Any]) -> None:
        """One answer for each PromQL query."""

        async def reply(request: web.Request) -> web.StreamResponse:
            return web.json_response(by_query[str((await request.post())["query"])])

        self.reply = reply

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        self.forms.append({key: str(value) for key, value in (await request.post()).items()})
        return await self.reply(request)

    @property
    def authorization(self) -> str | None:
        return self.requests[-1].headers.get("Authorization")


@asynccontextmanager
async def stand_in(tls: ssl.SSLContext | None = None) -> AsyncIterator[StandIn]:
    server = StandIn()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    port = runner.addresses[0][1]
    server.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}"
    try:
        yield server
    finally:
        await runner.cleanup()
        await asyncio.sleep(0)


@contextmanager
def stand_in_beside() -> Iterator[StandIn]:
    """The same on a thread of its own, for what runs a loop itself."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    opened = stand_in()
    try:
        yield asyncio.run_coroutine_threadsafe(opened.__aenter__(), loop).result(10)
    finally:
        asyncio.run_coroutine_threadsafe(opened.__aexit__(None, None, None), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
