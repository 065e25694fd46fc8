"""Watchers that do not read: they cost no memory and are closed; the others do not notice."""

import asyncio
import json
import random
import socket
from typing import Any

from podium.framework.clock import SystemClock
from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.http.server import ApiServer
from podium_cluster.apiserver.kinds import built_in

CONFIG_MAP = built_in("v1", "ConfigMap")
PATH = "/api/v1/namespaces/default/configmaps?watch=true&resourceVersion={}"
LARGE = "x" * 100_000


def run(story: Any, *, history: int = 16, **settings: Any) -> None:
    async def main() -> None:
        api = EmbeddedApi(clock=SystemClock(), rng=random.Random(1), history=history)
        server = ApiServer(api, **settings)
        await server.start()
        try:
            await story(api, server)
        finally:
            await server.stop()

    asyncio.run(main())


def begin(api: EmbeddedApi, server: ApiServer) -> socket.socket:
    """A watch whose client has a small buffer and never reads by itself."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", server.port))
    client.setblocking(False)
    client.send(f"GET {PATH.format(api.store.revision)} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    return client


async def change(api: EmbeddedApi, times: int) -> None:
    for number in range(times):
        body = {"metadata": {"name": "a", "namespace": "default"}, "data": {"text": LARGE, "turn": str(number)}}
        if api.store.get(CONFIG_MAP, "default", "a") is None:
            api.create(CONFIG_MAP, body)
        else:
            api.update(CONFIG_MAP, body)
        await asyncio.sleep(0.001)


async def until(condition: Any) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.01)


def test_a_client_that_never_reads_is_cut_off() -> None:
    async def story(api: EmbeddedApi, server: ApiServer) -> None:
        with begin(api, server):
            await until(lambda: server.watches == 1)
            await change(api, 100)
            await until(lambda: server.watches == 0)

    run(story, stall_seconds=0.1)


def test_a_client_that_reads_too_late_is_told_that_it_has_missed_something() -> None:
    async def story(api: EmbeddedApi, server: ApiServer) -> None:
        with begin(api, server) as client:
            await until(lambda: server.watches == 1)
            await change(api, 100)
            received = bytearray()
            loop = asyncio.get_running_loop()
            while not received.endswith(b"0\r\n\r\n"):
                received += await loop.sock_recv(client, 1 << 20)
            last = received[received.rindex(b'{"type"') :].partition(b"\n")[0]
            event = json.loads(last)
            assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")

    run(story)


def test_others_hear_everything_while_one_does_not_read() -> None:
    async def story(api: EmbeddedApi, server: ApiServer) -> None:
        with begin(api, server):
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1 << 20)
            writer.write(f"GET {PATH.format(api.store.revision)} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            await until(lambda: server.watches == 2)
            turns: list[str] = []

            async def read() -> None:
                while len(turns) < 50:
                    line = await reader.readuntil(b"\n")
                    if line.startswith(b'{"type":'):
                        turns.append(json.loads(line)["object"]["data"]["turn"])

            reading = asyncio.create_task(read())
            await change(api, 50)
            async with asyncio.timeout(30):
                await reading
            assert turns == [str(number) for number in range(50)]
            writer.close()

    run(story, history=64)


def test_bookmarks_come_as_often_as_they_should() -> None:
    async def story(api: EmbeddedApi, server: ApiServer) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        path = PATH.format(api.store.revision) + "&allowWatchBookmarks=true"
        writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        seen: list[str] = []
        while len(seen) < 2:
            line = await reader.readuntil(b"\n")
            if line.startswith(b'{"type":"BOOKMARK"'):
                seen.append(json.loads(line)["object"]["metadata"]["resourceVersion"])
        assert seen == [str(api.store.revision)] * 2
        writer.close()

    run(story, bookmark_seconds=0.02)
