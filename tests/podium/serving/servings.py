"""A served scheduler for tests, and ways to ask it things."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import aiohttp
from aiohttp import web

from podium.framework import ManualClock
from podium.run.metrics import Metrics
from podium.serving.endpoints import AccessControl, Endpoints, EndpointServer
from tools.testbed.certificates import KeyPair

LOOPBACK = "127.0.0.1"
CONFIGURATION = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


class Everybody:
    """Access control that lets everybody in."""

    async def start(self) -> None:
        pass

    async def stop(self) -> None:
        pass

    async def refusal(self, _request: web.Request) -> web.Response | None:
        return None


class Reply(NamedTuple):
    status: int
    text: str
    headers: Mapping[str, str]


@asynccontextmanager
async def served(
    *, access: AccessControl | None = None, tls: ssl.SSLContext | None = None, port: int = 0, **options: Any
) -> AsyncIterator[str]:
    """The address of endpoints that run meanwhile; plain HTTP unless a TLS context is given."""
    metrics = options.pop("metrics", None) or Metrics(ManualClock(), now=lambda: 0.0)
    options.setdefault("readyz", {})
    idle = {"idle_timeout": options.pop("idle_timeout")} if "idle_timeout" in options else {}
    shown = Endpoints(metrics=metrics, configuration=lambda: {"componentconfig": CONFIGURATION}, **options)
    serving = EndpointServer(shown, access or Everybody(), tls=tls, host=LOOPBACK, port=port, **idle)
    await serving.start()
    try:
        yield f"{'http' if tls is None else 'https'}://{LOOPBACK}:{serving.port}"
    finally:
        await serving.stop()


async def ask(
    url: str, *, method: str = "GET", token: str = "", pair: KeyPair | None = None, headers: Any = None
) -> Reply:
    """Ask over a connection of its own, believing any server; `pair` is shown as a client certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if pair is not None:
        context.load_cert_chain(pair.certificate, pair.key)
    sent = {**({"Authorization": f"Bearer {token}"} if token else {}), **(headers or {})}
    connector = aiohttp.TCPConnector(ssl=context)  # closed with its session, which waits for that
    async with (
        aiohttp.ClientSession(connector=connector) as session,
        session.request(method, url, headers=sent) as answer,
    ):
        return Reply(answer.status, await answer.text(), dict(answer.headers))
