"""Clients that send or read slowly, or not at all: their connections end, and the others do not notice."""

import asyncio
import json
import time
from typing import Any

import pytest

from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.http.server import ApiServer
from tests.podium_cluster.apiserver.http.test_slow_watchers import CONFIG_MAP, run

PATH = "/api/v1/namespaces/default/configmaps"
VERSION = b"GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n"


async def read_to_end(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(20):
        return await reader.read()


@pytest.mark.parametrize("sent", [b"", b"GET /version HTTP/1.1\r\nHo", VERSION, VERSION + b"GET /ver"])
def test_a_connection_without_a_whole_request_ends(sent: bytes) -> None:
    async def story(api: EmbeddedApi, server: ApiServer) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(sent)
        assert (b"gitVersion" in await read_to_end(reader)) == (VERSION in sent)
        writer.close()

    run(story, idle_seconds=0.3)


def test_many_slow_connections_end_while_others_are_served() -> None:
    async def story(api: EmbeddedApi, server: ApiServer) -> None:
        slow = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(100)]
        for _, writer in slow:
            writer.write(b"GET /version HTTP/1.1\r\n")
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(VERSION)
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        for reader, _ in slow:
            assert await read_to_end(reader) == b""
        for _, each in [(reader, writer), *slow]:
            each.close()

    run(story, idle_seconds=0.5)


def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    async def story(api: EmbeddedApi, server: ApiServer) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        head = (
            f"POST {PATH} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
        )
        writer.write(head.encode() + b"{")
        answer = await asyncio.wait_for(reader.readuntil(b"}"), 20)
        assert answer.startswith(b"HTTP/1.1 408")
        writer.close()

    run(story, stall_seconds=0.3)


def test_a_large_answer_that_is_not_read_is_given_up() -> None:
    async def story(api: EmbeddedApi, server: ApiServer) -> None:
        for number in range(20):  # more than sockets hold
            api.create(CONFIG_MAP, {"metadata": {"name": f"a{number}"}, "data": {"text": "x" * 900_000}})
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1024)
        writer.write(f"GET {PATH} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        await asyncio.sleep(1.5)
        received = 0
        began = time.monotonic()
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            while time.monotonic() - began < 20:
                received += len(await reader.readexactly(65_536))
        assert received < 18_000_000, "it was cut off on the way"
        writer.close()

    run(story, stall_seconds=0.3)


def test_a_large_answer_arrives_whole() -> None:
    async def story(api: EmbeddedApi, server: ApiServer) -> None:
        api.create(CONFIG_MAP, {"metadata": {"name": "a"}, "data": {"text": "x" * 400_000, "more": "é" * 300_000}})
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(f"GET {PATH}/a HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        _, _, body = (await read_to_end(reader)).partition(b"\r\n\r\n")
        found: Any = json.loads(body)
        assert found["data"] == {"text": "x" * 400_000, "more": "é" * 300_000}
        writer.close()

    run(story)
