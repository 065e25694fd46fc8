"""Kept connections to one server: the last one used is used next, and a limit holds however many ask at once.

A connection made with other certificates than those of now is closed instead of being used again, so rotated ones
take effect with the next request. One that was idle for long is closed too: the server is about to do the same, and a
request that meets that moment cannot know whether it arrived.
"""

import asyncio
import ssl
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from podium.client.wire import Answer, Connection

T = TypeVar("T")

MAX_IDLE = 60.0
"""Seconds; kube-apiserver closes idle connections after 90."""


class NotSentError(Exception):
    """The exchange failed before anything was sent; `__cause__` says how."""


class Pool:
    def __init__(self, host: str, port: int, *, server_name: str | None, limit: int, max_answer: int) -> None:
        self._host = host
        self._port = port
        self._server_name = server_name
        self._max_answer = max_answer
        self._places = asyncio.Semaphore(limit)
        self._idle: list[Connection] = []
        self._open: set[Connection] = set()
        self._tls: ssl.SSLContext | None = None

    async def exchange(
        self, request: bytes, tls: ssl.SSLContext | None, deadline: float, guard: Callable[[], None] | None
    ) -> Answer:
        """Sends `request` on a free connection; `guard` is asked at the last moment. NotSentError where it never left,
        TimeoutError, OSError or MalformedError where it may have."""
        loop = asyncio.get_running_loop()
        if tls is not self._tls:
            self._tls = tls
            self._drop_idle()
        if self._places.locked():
            await _within(self._places.acquire(), deadline)
        else:
            await self._places.acquire()
        try:
            connection = self._idle_connection(loop.time())
            if connection is None:
                connection = await _within(self._connect(loop, tls), deadline)
            try:
                if guard is not None:
                    guard()
                answer = await connection.exchange(request, deadline)
            finally:
                if connection.reusable and tls is self._tls:
                    connection.idle_since = loop.time()
                    self._idle.append(connection)
                else:
                    connection.abort()
            return answer
        finally:
            self._places.release()

    async def close(self) -> None:
        self._idle.clear()
        for connection in self._open:
            connection.abort()
        if self._open:
            await asyncio.wait([connection.lost for connection in self._open], timeout=1)

    def _idle_connection(self, now: float) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.reusable and now - connection.idle_since < MAX_IDLE:
                return connection
            connection.abort()
        return None

    async def _connect(self, loop: asyncio.AbstractEventLoop, tls: ssl.SSLContext | None) -> Connection:
        _, connection = await loop.create_connection(
            lambda: Connection(loop, self._max_answer),
            self._host,
            self._port,
            ssl=tls,
            server_hostname=(self._server_name or self._host) if tls is not None else None,
        )
        self._open.add(connection)
        connection.lost.add_done_callback(lambda _: self._open.discard(connection))
        return connection

    def _drop_idle(self) -> None:
        for connection in self._idle:
            connection.abort()
        self._idle.clear()


async def _within(step: Coroutine[Any, Any, T], deadline: float) -> T:
    """The steps before sending: whatever goes wrong there, the server knows nothing of the request."""
    try:
        async with asyncio.timeout_at(deadline):
            return await step
    except OSError as error:  # among them TimeoutError, ssl.SSLError and failed look-ups of the name
        raise NotSentError from error
