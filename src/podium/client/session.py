"""Sends GETs, watches, and everything that goes through a proxy, by aiohttp's session.

Large answers come compressed and in many chunks, which aiohttp's C parser reads well; for the many small writes see
`wire`. Watches have a connector of their own without a limit: however many run, requests never wait for one of theirs.
"""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from weakref import WeakSet

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from podium.client.connection_errors import unreachable
from podium.client.wire import MalformedResponseError

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


async def read_whole(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """The body, decompressed; MalformedResponseError when it is longer than `limit`."""
    parts: list[bytes] = []
    size = 0
    try:
        while part := await response.content.readany():
            size += len(part)
            if size > limit:
                raise MalformedResponseError(f"the answer is larger than {limit} bytes")
            parts.append(part)
    except BaseException:
        abandon(response)
        raise
    return parts[0] if len(parts) == 1 else b"".join(parts)


def abandon(response: aiohttp.ClientResponse) -> None:
    """Ends a watch at once: closing would first say goodbye in TLS and wait for the server to do the same."""
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
    response.close()


class Chunks:
    """The body of a watch as it comes."""

    def __init__(self, response: aiohttp.ClientResponse, host: str) -> None:
        self._content = response.content
        self._host = host

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        try:
            chunk = await self._content.readany()
        except (aiohttp.ClientError, OSError) as error:
            raise unreachable(error, self._host) from None
        if not chunk:
            raise StopAsyncIteration
        return chunk
