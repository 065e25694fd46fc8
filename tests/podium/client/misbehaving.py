"""An API server that answers lists and watches of one collection as a test has written down, well or badly.

Answers are taken in turn; the last list is repeated, and a watch for which nothing is written stays open and silent.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import msgspec
from aiohttp import web

from podium.client import Access, ApiResource, Client
from podium.kube import Node

NODES = ApiResource("/api/v1/nodes", Node)

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


def node(name: str, version: int, uid: str | None = None, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": uid or f"uid-of-{name}", "resourceVersion": str(version), **metadata}}


def line(type_: str, obj: Any) -> bytes:
    return msgspec.json.encode({"type": type_, "object": obj}) + b"\n"


def bookmark(version: int) -> bytes:
    return line("BOOKMARK", {"kind": "Node", "metadata": {"resourceVersion": str(version)}, "spec": None})


def status(code: int, reason: str, message: str = "no", **details: Any) -> dict[str, Any]:
    return {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message, **details}


def listed(*items: Any, version: int, more: str = "") -> Answer:
    """A page with these objects."""

    async def answer(_: web.Request) -> web.StreamResponse:
        return web.json_response({"metadata": {"resourceVersion": str(version), "continue": more}, "items": items})

    return answer


def refused(code: int, reason: str, message: str = "no", *, retry_after: int | None = None) -> Answer:
    async def answer(_: web.Request) -> web.StreamResponse:
        if retry_after is None:
            return web.json_response(status(code, reason, message), status=code)
        told = status(code, reason, message, details={"retryAfterSeconds": retry_after})
        return web.json_response(told, status=code, headers={"Retry-After": str(retry_after)})

    return answer


def sent(*pieces: bytes, then: str = "end") -> Answer:
    """A watch that sends the pieces one by one, and then ends, breaks off, or stays open ("hold")."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
            await asyncio.sleep(0)
        if then == "hold":
            await asyncio.Event().wait()
        if then == "break":
            assert request.transport is not None
            await asyncio.sleep(0.01)  # what was written is on its way first
            request.transport.abort()
        return response

    return answer


class Asked(NamedTuple):
    """A request as it came: "list" or "watch", its parameters, and when."""

    what: str
    params: dict[str, str]
    time: float


class Misbehaving:
    """`asked` has the requests so far; `lists` and `watches` are the answers still to be given."""

    def __init__(self, lists: Sequence[Answer], watches: Sequence[Answer]) -> None:
        self.lists = list(lists)
        self.watches = list(watches)
        self.asked: list[Asked] = []

    @property
    def watched_from(self) -> list[str]:
        """The versions from which watches were asked for."""
        return [each.params["resourceVersion"] for each in self.asked if each.what == "watch"]

    @property
    def times_listed(self) -> int:
        return sum(each.what == "list" for each in self.asked)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        what = "watch" if "watch" in request.query else "list"
        self.asked.append(Asked(what, dict(request.query), asyncio.get_running_loop().time()))
        if what == "watch":
            answer = self.watches.pop(0) if self.watches else sent(then="hold")
        else:
            answer = self.lists.pop(0) if len(self.lists) > 1 else self.lists[0]
        return await answer(request)


@asynccontextmanager
async def misbehaving(
    lists: Sequence[Answer], watches: Sequence[Answer] = ()
) -> AsyncIterator[tuple[Misbehaving, Client]]:
    """The server, running, and a client of it."""
    server = Misbehaving(lists, watches)
    application = web.Application()
    application.router.add_get(NODES.path, server.handle)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.01)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port = runner.addresses[0][1]
    try:
        async with Client(Access(f"http://127.0.0.1:{port}")) as client:
            yield server, client
    finally:
        await runner.cleanup()
