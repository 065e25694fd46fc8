"""Sends GETs, watches, and everything that goes through a proxy, by aiohttp's session.

Large answers come compressed and in many chunks, which aiohttp's C parser reads well; for the many small writes see
`wire`. Watches have a connector of their own without a limit: however many run, requests never wait for one of theirs.
"""

import asyncio
import io
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, suppress
from weakref import WeakSet

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from podium.client.connection_errors import unreachable
from podium.client.wire import AnswerTooLargeError
from podium.kube.bounds import MOST_VALUES

SLICE = 1 << 20
"""Bytes between two turns for the rest of the process: unpacking needs no waiting for the network."""
LARGE = 8 << 20
"""Bytes from which answers are read one after the other: many at once would add up."""
ROUNDS_TO_CLOSE = 20
"""Rounds of the event loop that connections get to close in."""


class TcpConnector(aiohttp.TCPConnector):
    """Connects over TCP, and leaves no socket open when it is closed.

    A request that is cancelled leaves its connection to a TLS farewell that aiohttp forgets about and that the server
    may take long to answer; when the event loop ends before that, the socket stays open.
    """

    def __init__(self, limit: int) -> None:
        super().__init__(limit=limit, keepalive_timeout=60, socket_factory=self._new_socket)
        self._sockets: WeakSet[socket.socket] = WeakSet()

    def _new_socket(self, address: aiohttp.AddrInfoType) -> socket.socket:
        created = socket.socket(*address[:3])
        self._sockets.add(created)
        return created

    async def close(self, *, abort_ssl: bool = False) -> None:
        await super().close(abort_ssl=True)
        for _ in range(ROUNDS_TO_CLOSE):
            open_sockets = [each for each in self._sockets if each.fileno() >= 0]
            if not open_sockets:
                break
            for each in open_sockets:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)  # the transport sees the end, and closes it
            await asyncio.sleep(0)


class Session:
    """The two aiohttp sessions of one client."""

    def __init__(
        self,
        *,
        limit: int,
        proxy: str | None,
        server_name: str | None,
        compression: bool,
        connector: Callable[[int], aiohttp.BaseConnector] = TcpConnector,
    ) -> None:
        self._connector = connector
        self._limit = limit
        self._proxy = proxy
        self._server_name = server_name
        self._encoding = "gzip" if compression else "identity"
        self._sessions: dict[bool, aiohttp.ClientSession] = {}

    async def open(
        self,
        verb: str,
        url: str,
        headers: CIMultiDict[str],
        body: bytes | None,
        tls: ssl.SSLContext | None,
        timeout: aiohttp.ClientTimeout,
        *,
        streaming: bool = False,
    ) -> aiohttp.ClientResponse:
        """Sends and returns when the head of the answer is there."""
        return await self._session(streaming).request(
            verb,
            URL(url, encoded=True),
            data=body,
            headers=headers,
            timeout=timeout,
            ssl=True if tls is None else tls,
            server_hostname=self._server_name,
            proxy=self._proxy,
            allow_redirects=False,
        )

    async def close(self) -> None:
        for session in self._sessions.values():
            await session.close()
        self._sessions.clear()
        await asyncio.sleep(0)  # connections that were aborted close their sockets in the next round

    def _session(self, streaming: bool) -> aiohttp.ClientSession:
        session = self._sessions.get(streaming)
        if session is None:
            session = self._sessions[streaming] = aiohttp.ClientSession(
                connector=self._connector(0 if streaming else self._limit),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"Accept-Encoding": self._encoding},
            )
            session._retry_connection = False  # by itself aiohttp would send a PUT or DELETE a second time
        return session


async def read_whole(response: aiohttp.ClientResponse, limit: int, turn: asyncio.Lock) -> bytes:
    """The body, unpacked; AnswerTooLargeError as soon as that is longer than `limit`, or has too many values for the
    objects they become. Large bodies take turns."""
    size = commas = 0
    try:
        async with AsyncExitStack() as stack:
            body = stack.enter_context(io.BytesIO())  # closed, as a traceback would keep it for long
            while part := await response.content.readany():
                before, size = size, size + len(part)
                commas += part.count(b",")
                if size > limit:
                    raise AnswerTooLargeError(f"the answer is larger than {limit} bytes")
                if commas > MOST_VALUES:
                    raise AnswerTooLargeError(f"the answer has more than {MOST_VALUES} values")
                body.write(part)
                if before < LARGE <= size:
                    await stack.enter_async_context(turn)
                elif before // SLICE != size // SLICE:
                    await asyncio.sleep(0)
            return body.getvalue()
    except BaseException:  # also a cancellation: a connection with an unread body cannot be used again
        abandon(response)
        raise


def abandon(response: aiohttp.ClientResponse) -> None:
    """Ends a watch at once: closing would first say goodbye in TLS and wait for the server to do the same."""
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
    response.close()


class Chunks:
    """The body of a watch as it comes, unpacked."""

    def __init__(self, response: aiohttp.ClientResponse, host: str) -> None:
        self._content = response.content
        self._host = host
        self._unpaused = 0

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        try:
            chunk = await self._content.readany()
        except (aiohttp.ClientError, OSError) as error:
            raise unreachable(error, self._host) from None
        if not chunk:
            raise StopAsyncIteration
        self._unpaused += len(chunk)
        if self._unpaused >= SLICE:
            self._unpaused = 0
            await asyncio.sleep(0)
        return chunk
