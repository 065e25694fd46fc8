"""Sends many HTTP requests with a client that costs next to nothing, so that the server is what is measured.

Requests are ready bytes. A few connections each have one of them under way, take the next when the answer is complete,
and look at no more of an answer than its status and its length.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

CONNECTIONS: Final = 16
_LENGTH: Final = b"content-length: "


class RefusedError(Exception):
    """The server answered something else than success; the text is its answer."""


def request(method: str, path: str, body: object = None, content_type: str = "application/json") -> bytes:
    """One request, ready to send on a connection that is kept."""
    data = b"" if body is None else msgspec.json.encode(body)
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\nContent-Type: {content_type}\r\n"
    )
    return f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data


async def send_all(host: str, port: int, requests: Sequence[bytes], connections: int = CONNECTIONS) -> float:
    """Send them all; the seconds it took. RefusedError for the first that did not succeed."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()
    sender = _Sender(iter(requests), len(requests), done)
    transports = []
    began = time.perf_counter()
    for _ in range(min(connections, len(requests))):
        transport, _ = await loop.create_connection(lambda: _Connection(sender), host, port)
        transports.append(transport)
    try:
        await done
    finally:
        for transport in transports:
            transport.close()
    return time.perf_counter() - began


class _Sender:
    def __init__(self, requests: Iterator[bytes], count: int, done: asyncio.Future[None]) -> None:
        self._requests = requests
        self._left = count
        self._done = done

    def next(self) -> bytes | None:
        return next(self._requests, None)

    def answered(self) -> None:
        self._left -= 1
        if self._left == 0 and not self._done.done():
            self._done.set_result(None)

    def fail(self, why: str) -> None:
        if not self._done.done():
            self._done.set_exception(RefusedError(why))


class _Connection(asyncio.Protocol):
    def __init__(self, sender: _Sender) -> None:
        self._sender = sender
        self._received = b""
        self._missing = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._send()

    def data_received(self, data: bytes) -> None:
        if self._missing:
            self._missing -= len(data)
            if self._missing == 0:
                self._answered()
            return
        self._received += data
        head_end = self._received.find(b"\r\n\r\n")
        if head_end < 0:
            return
        head = self._received[:head_end].lower()
        if not head.startswith(b"http/1.1 2"):
            self._sender.fail(self._received.decode(errors="replace"))
            return
        start = head.index(_LENGTH) + len(_LENGTH)
        length = int(head[start:].split(b"\r\n", 1)[0])
        self._missing = length - (len(self._received) - head_end - 4)
        if self._missing == 0:
            self._answered()

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is not None:
            self._sender.fail(f"the connection was lost: {exc}")

    def _answered(self) -> None:
        self._received = b""
        self._sender.answered()
        self._send()

    def _send(self) -> None:
        following = self._sender.next()
        if following is not None:
            self._transport.write(following)
