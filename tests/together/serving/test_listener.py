"""A port under siege: half requests, handshakes that never end, answers nobody reads, and no files left to open."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import uvloop
from aiohttp import web

from podium.extender import server as extender_server
from podium.serving import endpoints as endpoint_server
from podium.serving import listener as listener_module
from podium.serving import plugin_pages
from podium.serving.listener import BoundedListener, WebPort
from podium_cluster.apiserver.http import server as api_server
from tools.fuzz.endpoints import ENDPOINTS
from tools.testbed.certificates import CertificateAuthority

HALF = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Half: "
MOST = 16
SIZE = 16 << 20

Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    def runs(main: Coroutine[Any, Any, None]) -> None:
        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(main)

    return runs


@contextmanager
def besieged(port: int, count: int, begun: bytes = HALF) -> Iterator[list[socket.socket]]:
    """So many connections that have brought this much."""
    with ExitStack() as stack:
        found = [stack.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(count)]
        for each in found:
            each.sendall(begun)
            each.setblocking(False)
        yield found


def is_open(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) != b""
    except BlockingIOError:
        return True
    except ConnectionError:
        return False


async def status(port: int, path: str = "/healthz", tls: ssl.SSLContext | None = None) -> int:
    async with asyncio.timeout(10):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=tls)
        try:
            writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode())
            line = await reader.readline()
        finally:
            writer.transport.abort()
    return int(line.split()[1]) if line else 0


@asynccontextmanager
async def served(
    answer: Callable[[web.Request], Coroutine[Any, Any, web.StreamResponse]], tls: ssl.SSLContext | None = None
) -> AsyncIterator[BoundedListener]:
    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    port = WebPort(app, most=MOST, idle_timeout=30.0, grace=0.1)
    await port.start("127.0.0.1", 0, tls)
    try:
        assert port.listener is not None
        yield port.listener
    finally:
        await port.stop()


async def well(_: web.Request) -> web.StreamResponse:
    return web.Response(text="ok")


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not holds():
            await asyncio.sleep(0.001)


@pytest.mark.parametrize("name", list(ENDPOINTS))
def test_no_port_holds_more_than_it_may_and_each_answers_under_siege(
    name: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (api_server, endpoint_server, plugin_pages):
        monkeypatch.setattr(module, "MOST_CONNECTIONS", MOST)
    monkeypatch.setattr(extender_server, "FOR_HEALTH", MOST - 1000)

    async def main() -> None:
        endpoint = ENDPOINTS[name]
        async with endpoint.start() as port:
            with besieged(port, 3 * MOST) as found:
                assert await status(port, endpoint.health) == 200
                await until(lambda: sum(map(is_open, found)) <= MOST)

    run(main())


def test_half_handshakes_are_connections_too(run: Run, tmp_path: Path) -> None:
    pair = CertificateAuthority(tmp_path).issue("x", hosts=["127.0.0.1"])
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pair.certificate, pair.key)
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE

    async def main() -> None:
        async with served(well, context) as page:
            with besieged(page.port, 3 * MOST, b"\x16\x03\x01\x02\x00") as found:
                assert await status(page.port, tls=trusting) == 200
                await until(lambda: sum(map(is_open, found)) <= MOST)

    run(main())


def test_what_is_being_answered_is_not_closed_for_others(run: Run) -> None:
    go_on = asyncio.Event()

    async def slow(request: web.Request) -> web.StreamResponse:
        if request.path == "/slow":
            await go_on.wait()
        return web.Response(text="ok")

    async def main() -> None:
        async with served(slow) as page:
            busy = [asyncio.create_task(status(page.port, "/slow")) for _ in range(MOST - 1)]
            await asyncio.sleep(0.05)
            with besieged(page.port, 2 * MOST):
                assert await status(page.port) == 200
            busy += [asyncio.create_task(status(page.port, "/slow"))]
            go_on.set()
            assert await asyncio.gather(*busy) == [200] * MOST

    run(main())


def test_an_answer_that_nobody_reads_ends(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener_module, "SWEEP", 0.02)
    monkeypatch.setattr(listener_module, "UNREAD", 0.1)

    async def large(_: web.Request) -> web.StreamResponse:
        return web.Response(body=bytes(SIZE))

    async def main() -> None:
        async with served(large) as page:
            with besieged(page.port, 1, b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n") as (unread,):
                await until(lambda: page.connections == 1)
                await until(lambda: page.connections == 0)
                unread.settimeout(10)
                received = 0
                while part := unread.recv(1 << 20):
                    received += len(part)
                assert received < SIZE

    run(main())


def test_a_process_without_a_file_left_to_open_goes_on_with_what_it_has(run: Run) -> None:
    async def main() -> None:
        async with served(well) as page:
            with besieged(page.port, MOST // 2) as found, ExitStack() as stack:
                await until(lambda: page.connections == len(found))
                loop = asyncio.get_running_loop()
                client = stack.enter_context(socket.socket())
                client.setblocking(False)
                limits = resource.getrlimit(resource.RLIMIT_NOFILE)
                resource.setrlimit(resource.RLIMIT_NOFILE, (client.fileno() + 1, limits[1]))
                stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, limits)
                with suppress(OSError):
                    while True:
                        stack.callback(os.close, os.dup(client.fileno()))
                await loop.sock_connect(client, ("127.0.0.1", page.port))
                await loop.sock_sendall(client, HALF[: HALF.index(b"X")] + b"Connection: close\r\n\r\n")
                async with asyncio.timeout(10):
                    assert await loop.sock_recv(client, 12) == b"HTTP/1.1 200"
                assert sum(map(is_open, found)) < len(found)

    run(main())


def test_a_name_with_two_addresses_is_listened_on_at_both(run: Run) -> None:
    async def main() -> None:
        served_by: list[asyncio.Protocol] = []

        def protocol() -> asyncio.Protocol:
            served_by.append(asyncio.Protocol())
            return served_by[-1]

        port = BoundedListener(protocol, MOST)
        await port.start("localhost", 0)
        for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
            with socket.socket(family) as client:
                if family in {each.family for each in port._sockets}:
                    client.connect((address, port.port))
                    await until(lambda: bool(served_by))
                    served_by.clear()
        with pytest.raises(OSError, match="in use"):
            await BoundedListener(protocol, MOST).start("127.0.0.1", port.port)
        port.stop()
        await until(lambda: port.connections == 0)

    run(main())
