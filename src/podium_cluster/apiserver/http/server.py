"""Serves the API over HTTP: bytes in, bytes out. What a request means and does is handler.py's.

It stands on aiohttp's low-level server, without routing, and answers each request in one go on the event loop. Only
three things take time: a body that comes in pieces, an answer larger than the client reads, and a watch, which ends
when the client leaves or does not read, when its time is up, or when it has fallen too far behind.

An answer's warnings are written as Warning headers, within bounds. As kube-apiserver: each warning once, 4,096
characters in all; when that is not enough, each is cut to 256. Many HTTP clients read at most 100 headers, so the last
one holds what is over as a list, which the format allows.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import ssl
import zlib
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from aiohttp import HttpVersion11, hdrs, web

from podium.serving.browser_guard import BrowserGuard
from podium.serving.listener import BoundedListener
from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.errors import StatusError, too_large, too_slow
from podium_cluster.apiserver.http.handler import RequestHandler, SlowChecker, failure
from podium_cluster.apiserver.messages import ApiRequest, ApiResponse, Query
from podium_cluster.apiserver.store.watcher import Watcher, WatchRequest

BODY_LIMIT: Final = 3 << 20
"""Bytes of the largest request body, as kube-apiserver has it."""
GZIP_FROM: Final = 128 << 10
BOOKMARK_SECONDS: Final = 60.0
STALL_SECONDS: Final = 60.0
"""How long a client may leave an answer unread, or keep back the rest of a request's body."""
IDLE_SECONDS: Final = 60.0
"""How long a connection may take to bring the whole head of its next request."""
MOST_CONNECTIONS: Final = 4096
"""Watches among them: every client has some."""
GRACE: Final = 1.0
"""Seconds that answers under way get at the end."""
_PIECE: Final = 1 << 20
_SHORTEST_WATCH: Final = 1800.0
"""A watch that names no end lasts between this and twice this."""
_LONGEST_WATCH: Final = 86_400.0
_WITHOUT_BODY: Final = ("GET", "HEAD")
_ALWAYS: Final = {"Cache-Control": "no-cache, private", "Server": "podium"}


Page = Callable[[Query], Awaitable[ApiResponse]]
"""Answers a request by its parameters."""
MOST_WARNED: Final = 4096
LONGEST_WARNING_WHEN_CUT: Final = 256
MOST_HEADERS: Final = 64


class Site(NamedTuple):
    """Pages for browsers."""

    serves: Callable[[str], bool]
    """Whether it has a path."""
    answer: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class PortInUseError(Exception):
    """The address is taken: one sentence says so."""


class ApiServer:
    """`port` 0 takes any free one; `url` says where it is after `start`. Stopping ends the watches."""

    def __init__(
        self,
        api: EmbeddedApi,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: ssl.SSLContext | None = None,
        bookmark_seconds: float = BOOKMARK_SECONDS,
        stall_seconds: float = STALL_SECONDS,
        idle_seconds: float = IDLE_SECONDS,
        rng: random.Random | None = None,
    ) -> None:
        self._api = api
        self._handler = RequestHandler(api)
        self._refusal = lru_cache(maxsize=256)(BrowserGuard(host).refusal)
        self._host = host
        self._tls = tls
        self._bookmark_seconds = bookmark_seconds
        self._stall_seconds = stall_seconds
        self._idle_seconds = idle_seconds
        self._rng = rng or random.Random()
        self._watchers: set[Watcher] = set()
        self._server: web.Server | None = None
        self._listener: BoundedListener | None = None
        self._checker = SlowChecker()
        self.port = port
        self.pages: dict[str, Page] = {}
        """What is answered beside the API, by path."""
        self.site: Site | None = None
        """Pages for browsers, which answer all requests below a path of theirs and look at who sends them."""

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://{self._host}:{self.port}"

    @property
    def watches(self) -> int:
        """How many watches are open."""
        return len(self._watchers)

    async def start(self) -> None:
        server = web.Server(
            self.answer,
            handler_cancellation=True,
            access_log=None,
            keepalive_timeout=self._idle_seconds,
            auto_decompress=False,  # As kube-apiserver, which takes a body as it comes.
        )
        listener = BoundedListener(server, MOST_CONNECTIONS)
        try:
            await listener.start(self._host, self.port, self._tls)
        except OSError as error:
            raise PortInUseError(f"nothing can listen on {self._host}:{self.port}: {_why(error)}") from None
        self._listener, self._server = listener, server
        self.port = listener.port
        self._checker.start()

    async def stop(self) -> None:
        self._checker.stop()
        for watcher in tuple(self._watchers):
            watcher.close()
        if self._listener is not None and self._server is not None:
            self._listener.stop()
            await asyncio.sleep(0)  # requests that are here already begin to be answered
            self._server.pre_shutdown()
            await self._server.shutdown(GRACE)
            self._listener = self._server = None

    async def answer(self, http: web.BaseRequest) -> web.StreamResponse:
        """The answer to one HTTP request."""
        if self.site is not None and self.site.serves(http.path):
            return await self._noted(http, self.site.answer(http))
        headers = http.headers
        method = http.method
        refusal = self._refusal(headers.get(hdrs.HOST), headers.get(hdrs.ORIGIN), headers.get("Sec-Fetch-Site"))
        if refusal is not None:
            return _written(failure(StatusError(403, "Forbidden", refusal, {})))
        try:
            body = b"" if method in _WITHOUT_BODY or not http.body_exists else await self._body(http)
        except StatusError as error:
            return _written(failure(error))
        return await self._noted(http, self._answer(http, body))

    async def _noted(self, http: web.BaseRequest, answer: Awaitable[web.StreamResponse]) -> web.StreamResponse:
        """Have the listener know that the connection is needed."""
        listener = self._listener
        if listener is None:
            return await answer
        listener.begins(http.protocol)
        try:
            return await answer
        finally:
            listener.ends(http.protocol)

    async def _answer(self, http: web.BaseRequest, body: bytes) -> web.StreamResponse:
        headers, method = http.headers, http.method
        request = ApiRequest(
            method,
            http.raw_path,
            body,
            headers.get(hdrs.CONTENT_TYPE, ""),
            headers.get(hdrs.ACCEPT, ""),
            headers.get(hdrs.USER_AGENT, ""),
        )
        page = self.pages.get(request.path) if method == "GET" else None
        found = await (self._checker.handled(self._handler, request) if page is None else page(request.query))
        if isinstance(found, WatchRequest):
            return await self._watch(http, found)
        if method == "GET" and len(found.body) > GZIP_FROM:
            return await self._in_pieces(http, found, zipped="gzip" in headers.get(hdrs.ACCEPT_ENCODING, ""))
        return _written(found)

    async def _body(self, http: web.BaseRequest) -> bytes:
        limit = BODY_LIMIT
        if (http.content_length or 0) > limit:
            raise too_large(limit)
        if http.content.is_eof() and http.content.total_bytes <= limit:  # It came with the head, as most do.
            return http.content.read_nowait()
        pieces: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._stall_seconds):
                while piece := await http.content.readany():
                    size += len(piece)
                    if size > limit:
                        raise too_large(limit)
                    pieces.append(piece)
        except TimeoutError:
            raise too_slow(self._stall_seconds) from None
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def _watch(self, http: web.BaseRequest, request: WatchRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={**_ALWAYS, hdrs.CONTENT_TYPE: "application/json"})
        _chunk(response, http)
        watcher = Watcher(self._api.store, request)
        self._watchers.add(watcher)
        try:
            with _until_it_leaves(http):
                await response.prepare(http)
                await self._send(watcher, request, response)
                await response.write_eof()
        finally:
            watcher.close()
            self._watchers.discard(watcher)
        return response

    async def _send(self, watcher: Watcher, request: WatchRequest, response: web.StreamResponse) -> None:
        loop = asyncio.get_running_loop()
        lasts = min(request.timeout or _SHORTEST_WATCH * (1 + self._rng.random()), _LONGEST_WATCH)
        ends = loop.time() + lasts
        bookmark_at = loop.time() + self._bookmark_seconds
        while True:
            if data := watcher.events():
                await self._write(response, data)
                continue
            now = loop.time()
            if watcher.ended or now >= ends:
                return
            if request.bookmarks and now >= bookmark_at:
                bookmark_at = now + self._bookmark_seconds
                await self._write(response, watcher.bookmark())
                continue
            await watcher.wait(min(ends, bookmark_at if request.bookmarks else ends) - now)

    async def _in_pieces(self, http: web.BaseRequest, found: ApiResponse, *, zipped: bool) -> web.StreamResponse:
        """A large answer, packed for those who ask, as fast as the client reads and no longer than it does."""
        response = web.StreamResponse(status=found.status, headers={**_ALWAYS, hdrs.CONTENT_TYPE: found.content_type})
        packer = zlib.compressobj(1, zlib.DEFLATED, 31) if zipped else None
        if packer is None:
            response.content_length = len(found.body)
        else:
            response.headers[hdrs.CONTENT_ENCODING] = "gzip"
            _chunk(response, http)
        whole = memoryview(found.body)
        with _until_it_leaves(http):
            await response.prepare(http)
            for start in range(0, len(whole), _PIECE):
                piece = whole[start : start + _PIECE]
                if data := piece if packer is None else packer.compress(piece):
                    await self._write(response, data)
            if packer is not None:
                await self._write(response, packer.flush())
            await response.write_eof()
        return response

    async def _write(self, response: web.StreamResponse, data: bytes | memoryview) -> None:
        async with asyncio.timeout(self._stall_seconds):
            await response.write(data)


@contextlib.contextmanager
def _until_it_leaves(http: web.BaseRequest) -> Iterator[None]:
    """Write to a client for as long as it is there, and reads."""
    try:
        yield
    except ConnectionError:
        pass
    except TimeoutError:
        if http.transport is not None:
            http.transport.abort()


def _why(error: OSError) -> str:
    """In the system's words: event loops add some of their own."""
    return os.strerror(error.errno).lower() if error.errno else str(error)


def _written(found: ApiResponse) -> web.Response:
    response = web.Response(body=found.body, status=found.status, headers=_ALWAYS)
    response.headers[hdrs.CONTENT_TYPE] = found.content_type
    for value in warning_headers(found.warnings):
        response.headers.add("Warning", value)
    if found.retry_after:
        response.headers[hdrs.RETRY_AFTER] = str(found.retry_after)
    return response


def _chunk(response: web.StreamResponse, http: web.BaseRequest) -> None:
    """Send in chunks, as HTTP/1.1 can; to older clients the end is where the connection ends."""
    if http.version >= HttpVersion11:
        response.enable_chunked_encoding()


def warning_headers(warnings: Iterable[str]) -> list[str]:
    """The values of the Warning headers.

    >>> warning_headers(['unknown field "a"'])
    ['299 - "unknown field \\\\"a\\\\""']
    """
    values = [f'299 - "{_quoted(warning)}"' for warning in _bounded(list(dict.fromkeys(filter(None, warnings))))]
    if len(values) <= MOST_HEADERS:
        return values
    return [*values[: MOST_HEADERS - 1], ", ".join(values[MOST_HEADERS - 1 :])]


def _bounded(warnings: list[str]) -> list[str]:
    if sum(map(len, warnings)) <= MOST_WARNED:
        return warnings
    sent: list[str] = []
    size = 0
    for warning in warnings:
        if size >= MOST_WARNED:
            break
        sent.append(warning[:LONGEST_WARNING_WHEN_CUT])
        size += len(sent[-1])
    return sent


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return "".join(character if character.isprintable() else " " for character in escaped)
