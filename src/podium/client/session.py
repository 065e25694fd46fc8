"""Sends GETs, watches, and everything that goes through a proxy, by aiohttp's session.

Large answers come compressed and in many chunks, which aiohttp's C parser reads well; for the many small writes see
`wire`. Watches have a connector of their own without a limit: however many run, requests never wait for one of theirs.

Also turns what the operating system, OpenSSL and aiohttp raise into one sentence: why there was no answer.

Its reader has a scheduler that does not start, so the sentence names the server and, where it is clear, what to
look at. Nothing of the request is quoted.
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

from podium.client.api_errors import TimedOut, Unreachable
from podium.client.pool import NotSentError
from podium.client.wire import AnswerTooLargeError, MalformedResponseError
from podium.kube.bounds import MOST_VALUES
from podium.kube.printable import printable, shortened

SLICE = 1 << 20
"""Bytes between two turns for the rest of the process: unpacking needs no waiting for the network."""
LARGE = 8 << 20
"""Bytes from which answers are read one after the other: many at once would add up."""
ROUNDS_TO_CLOSE = 20
"""Rounds of the event loop that connections get to close in."""
_QUOTED = 200
"""Characters of what a server's fault is called: the name quotes what it sent."""

_BEFORE_SENDING = (
    NotSentError,
    aiohttp.ClientConnectorError,
    aiohttp.ConnectionTimeoutError,
    aiohttp.ClientHttpProxyError,
    aiohttp.ClientProxyConnectionError,
)


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


def unreachable(error: BaseException, host: str) -> Unreachable:
    """The error to raise for one of those that end an exchange."""
    sent = not isinstance(error, _BEFORE_SENDING)
    if isinstance(error, aiohttp.ClientProxyConnectionError):
        why = error.os_error.strerror or error.os_error
        return Unreachable(f"the proxy on the way to {host} cannot be reached: {why}", sent=False)
    cause = _cause(error)
    if isinstance(cause, TimeoutError):
        waited = "did not answer in time" if sent else "could not be connected to in time"
        return TimedOut(f"{host} {waited}", sent=sent)
    forbidding = isinstance(cause, aiohttp.ClientHttpProxyError) and cause.status < 500
    lasting = isinstance(cause, AnswerTooLargeError) or (not sent and (isinstance(cause, ssl.SSLError) or forbidding))
    return Unreachable(_sentence(cause, host), sent=sent, lasting=lasting)


def _cause(error: BaseException) -> BaseException:
    if isinstance(error, NotSentError) and error.__cause__ is not None:
        return error.__cause__
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return error.certificate_error
    if isinstance(error, aiohttp.ClientConnectorError):
        return error.os_error
    return error


def _sentence(error: BaseException, host: str) -> str:
    match error:
        case ssl.SSLCertVerificationError():
            return f"the certificate of {host} is not accepted: {error.verify_message}; see certificate-authority"
        case ssl.SSLError(reason="WRONG_VERSION_NUMBER" | "RECORD_LAYER_FAILURE" | "PACKET_LENGTH_TOO_LONG"):
            return f"{host} does not speak TLS: is it http:// instead of https://, or another port?"
        case ssl.SSLError():
            return f"no TLS connection to {host}: {error.reason or error}"
        case ConnectionRefusedError():
            return f"{host} refuses connections: is the API server running there?"
        case socket.gaierror():
            return f"the address of {host} is not known: {error.strerror}"
        case aiohttp.ClientHttpProxyError():
            return f"the proxy does not connect to {host}: it answered {error.status} {error.message}"
        case AnswerTooLargeError():
            return f"{host} sent too much: {error}"
        case MalformedResponseError():
            return f"{host} sent something else than an answer: {error}"
        case aiohttp.ClientResponseError() if error.message:
            what = printable(shortened(error.message.partition("\n")[0], _QUOTED))
            return f"{host} sent something else than an answer: {what}"
        case aiohttp.ClientPayloadError() | aiohttp.ServerDisconnectedError() | ConnectionResetError():
            return f"{host} closed the connection before the whole answer came"
        case OSError() if error.strerror:
            return f"{host} cannot be reached: {error.strerror}"
    return f"{host} cannot be reached: {type(error).__name__}"
