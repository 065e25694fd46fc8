"""Connections for writes: kept, limited, replaced, given up in time; and the limit on one's own requests."""

import asyncio
import gc
import socket
import ssl
import threading
import time
import warnings
from contextlib import suppress
from pathlib import Path

import pytest
from aiohttp import web

from podium.client import Access, Client, TimedOut
from podium.client import client as client_module
from podium.client.access import Trust
from tests.podium.client.asking import VERBS, Asked, all_of, new_client, ok
from tests.podium.client.conftest import Run
from tests.podium.client.servers import read_request, serving, talking
from tools.testbed.certificates import CertificateAuthority


def test_one_connection_serves_many_requests_in_a_row(run: Run) -> None:
    connections: list[int] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(1)
        while True:
            await read_request(reader)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
            await writer.drain()

    async def main() -> None:
        async with talking(talk) as url, new_client(url) as client:
            for _ in range(10):
                await client.post("/a", {})
        assert len(connections) == 1

    run(main())


def test_a_connection_the_server_closed_meanwhile_is_replaced(run: Run) -> None:
    connections: list[int] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(1)
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        await writer.drain()

    async def main() -> None:
        async with talking(talk) as url, new_client(url) as client:
            for _ in range(3):
                await client.post("/a", {})
                await asyncio.sleep(0.02)
        assert len(connections) == 3

    run(main())


@pytest.mark.parametrize("verb", ["GET", "POST"])
def test_no_more_connections_are_made_than_allowed(run: Run, verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "CONNECTIONS", 3)
    under_way = 0
    most = 0

    async def handler(_: web.Request) -> web.Response:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.005)
        under_way -= 1
        return ok()

    async def main() -> None:
        async with serving(handler) as url, new_client(url) as client:
            await asyncio.gather(*(VERBS[verb](client) for _ in range(20)))
        assert most == 3

    run(main())


def test_waiting_for_a_connection_can_time_out_and_then_nothing_was_sent(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "CONNECTIONS", 1)
    requests: list[bytes] = []

    async def talk(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        requests.append(await read_request(reader))
        await reader.read()

    async def main() -> None:
        async with talking(talk) as url, new_client(url) as client:
            first = asyncio.ensure_future(client.post("/first", {}))
            await asyncio.sleep(0.01)
            with pytest.raises(TimedOut) as failed:
                await client.post("/second", {}, timeout=0.05)
            assert not failed.value.sent
            first.cancel()
        assert len(requests) == 1

    run(main())


def test_a_place_that_was_waited_for_is_taken_and_given_back(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some who wait give up, at the moment they are let in too; none of the places may get lost."""
    monkeypatch.setattr(client_module, "CONNECTIONS", 2)

    async def handler(_: web.Request) -> web.Response:
        await asyncio.sleep(0.001)
        return ok()

    async def main() -> None:
        async with serving(handler) as url, new_client(url) as client:
            for number in range(20):
                asking = [asyncio.ensure_future(client.post("/a", {})) for _ in range(6)]
                await asyncio.sleep(0.0002 * number)
                for each in asking[number % 3 :: 2]:
                    each.cancel()
                await asyncio.gather(*asking, return_exceptions=True)
            assert await asyncio.gather(*(client.post("/a", {}) for _ in range(6))) == [b"{}"] * 6
            assert client._pool is not None
            assert client._pool._free_slots == 2

    run(main())


def test_each_request_has_a_deadline_of_its_own(run: Run) -> None:
    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await read_request(reader)
        if b"/answered" in request:
            await asyncio.sleep(0.15)
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        await reader.read()

    async def main() -> None:
        ended: list[str] = []

        async def ask(client: Client, name: str, timeout: float) -> None:
            try:
                await client.post(f"/{name}", {}, timeout=timeout)
            except TimedOut:
                ended.append(f"{name} timed out")
            else:
                ended.append(name)

        async with talking(talk) as url, new_client(url) as client:
            await asyncio.gather(
                ask(client, "answered", 10),
                ask(client, "last", 0.7),
                ask(client, "first", 0.05),
                ask(client, "second", 0.1),
            )
        assert ended == ["first timed out", "second timed out", "answered", "last timed out"]

    run(main())


def test_a_caller_who_goes_away_takes_the_connection_along(run: Run) -> None:
    """Else the answer that still comes would be taken for the next request's."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            request = await read_request(reader)
            await asyncio.sleep(0.02)
            body = request.split()[1]
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))

    async def main() -> None:
        async with talking(talk) as url, new_client(url) as client:
            asking = asyncio.ensure_future(client.post("/one", {}))
            await asyncio.sleep(0.01)
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
            assert await client.post("/two", {}) == b"/two"

    run(main())


def test_the_own_limit_counts_reads_writes_and_watches(run: Run) -> None:
    seen = Asked(ok)

    async def main() -> None:
        async with serving(seen.answer) as url, new_client(url, qps=0.01, burst=3) as client:
            await client.post("/a", {})
            await client.get("/a")
            await all_of(client)
            for ask in (client.post("/a", {}), client.get("/a"), all_of(client)):
                with pytest.raises(TimedOut, match="qps") as failed:
                    await ask
                assert not failed.value.sent
        assert len(seen.requests) == 3

    run(main())


@pytest.mark.parametrize("streaming", [False, True])
def test_a_request_that_is_cancelled_leaves_no_socket_open(tmp_path: Path, streaming: bool) -> None:
    """Not even where the server never says goodbye in TLS: the event loop may end right after `close`."""
    authority = CertificateAuthority(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    pair = authority.issue("server")
    tls.load_cert_chain(pair.certificate, pair.key)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=_silent_server, args=(listening, tls), daemon=True).start()

        async def main() -> None:
            trust = Trust(insecure=True)
            access = Access(f"https://127.0.0.1:{listening.getsockname()[1]}", trust=trust, token="t")
            async with Client(access) as client:
                asking = client.stream("/watch").__aenter__() if streaming else client.get("/x")
                task = asyncio.ensure_future(asking)
                await asyncio.sleep(0.2)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ResourceWarning)
            asyncio.run(main())
            gc.collect()
    assert not [str(each.message) for each in caught]


def _silent_server(listening: socket.socket, tls: ssl.SSLContext) -> None:
    """Shakes hands and reads, and answers nothing."""
    connection, _ = listening.accept()
    with tls.wrap_socket(connection, server_side=True) as talking_to, suppress(OSError):
        while talking_to.recv(4096):
            time.sleep(1)
        time.sleep(5)
