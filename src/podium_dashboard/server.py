"""Serves the dashboard: the page, and the API that it reads, all below /dashboard/.

    /dashboard/                         the page
    /dashboard/api/v1/stream            ticks as server-sent events
    /dashboard/api/v1/NAME              one answer each, see `routes.py`
    /dashboard/login, /dashboard/logout where viewers have to say who they are

It reads and never writes. A page of another site cannot read it or send it anything: Host, Origin and Sec-Fetch-Site
are checked, but a link from another site opens the page.

The stream has the events `tick` (what changed: records.Tick), `missed` (fetch the snapshot) and `problem` (the
scheduler cannot be read; ticks go on when it can). Nothing queues up for a viewer that reads slowly: it gets the newest
tick when it has read the one before, and `missed` before it where it skipped some.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import hashlib
from collections.abc import Mapping
from importlib.resources import files
from typing import Final, NamedTuple

import msgspec
from aiohttp import web

from podium.run.dashboard import PATH, DashboardSource, NoSchedulerError
from podium.serving.browser_guard import FORBIDDEN, BrowserGuard, accepts_type
from podium_dashboard.access import RefusedError, Viewer, ViewerAccess, cookie_with
from podium_dashboard.feed import Feed
from podium_dashboard.records import NoAnswer
from podium_dashboard.routes import ApiAnswers

API: Final = f"{PATH}/api/v1/"
BODY_LIMIT: Final = 1 << 20
LONGEST_TOKEN: Final = 16 << 10
PACK_FROM: Final = 16 << 10
"""Bytes from which on answers are packed for those who take that."""
MOST_STREAMS: Final = 200

_SAFE: Final = {
    "Content-Security-Policy": "default-src 'self'; connect-src 'self'; img-src 'self' data:; style-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Server": "podium",
}
_JSON: Final = {**_SAFE, "Cache-Control": "no-store", "Content-Type": "application/json"}


class DashboardServer:
    """A dashboard of one scheduler."""

    def __init__(self, source: DashboardSource) -> None:
        self.feed = Feed(source)
        self.access = ViewerAccess(source.control)
        self._routes = ApiAnswers(self.feed)
        self._guard = BrowserGuard(source.host, own_pages=True)
        self._static: dict[str, StaticFile] = {}
        self._following: asyncio.Task[None] | None = None

    async def start(self) -> None:
        self._static = read_static_files()
        await self.access.start()
        self._following = asyncio.create_task(self.feed.run())

    async def stop(self) -> None:
        if self._following is not None:
            self._following.cancel()
            await asyncio.gather(self._following, return_exceptions=True)
        await self._routes.stop()
        await self.access.stop()

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """The answer to a request for PATH or what is below it."""
        refusal = self._refusal(request)
        if refusal is not None:
            return _problem(FORBIDDEN, refusal)
        path = request.path
        if path == PATH:
            return web.Response(status=308, headers={**_SAFE, "Location": f"{PATH}/"})
        try:
            if path.startswith(API):
                return await self._api(request, path.removeprefix(API))
            if path in (f"{PATH}/login", f"{PATH}/logout"):
                return await self._login(request, out=path.endswith("logout"))
        except RefusedError as error:
            return _problem(error.status, str(error), login=error.status == 401 and self.access.asks)
        except NoSchedulerError as error:
            return _problem(503, str(error))
        if request.method not in ("GET", "HEAD"):
            return _problem(405, "the dashboard only answers questions")
        return self._page(request, path.removeprefix(f"{PATH}/"))

    def _refusal(self, request: web.BaseRequest) -> str | None:
        headers = request.headers
        opens_page = request.method == "GET" and headers.get("Sec-Fetch-Mode") == "navigate"
        site = None if opens_page and not request.path.startswith(API) else headers.get("Sec-Fetch-Site")
        return self._guard.refusal(headers.get("Host"), headers.get("Origin"), site)

    # The page

    def _page(self, request: web.BaseRequest, path: str) -> web.Response:
        file = self._static.get(path or INDEX)
        if file is None:
            if path or self._static:
                return _problem(404, f"the dashboard has no page {path[:100]!r}")
            return _problem(503, "the page is not built: run make dashboard")
        headers = {**_SAFE, "Content-Type": file.content_type, "Cache-Control": file.caching, "ETag": file.etag}
        headers["Vary"] = "Accept-Encoding"
        if request.headers.get("If-None-Match") == file.etag:
            return web.Response(status=304, headers=headers)
        if "gzip" in request.headers.get("Accept-Encoding", ""):
            return web.Response(body=file.packed, headers={**headers, "Content-Encoding": "gzip"})
        return web.Response(body=file.body, headers=headers)

    # The API

    async def _api(self, request: web.BaseRequest, name: str) -> web.StreamResponse:
        viewer = await self._viewer(request)
        if name == "stream":
            if self.feed.viewers >= MOST_STREAMS:
                raise RefusedError(503, "too many viewers: try again later")
            self._routes.prepare()
            return await send_ticks(self.feed, viewer, request, {**_JSON, "Content-Type": "text/event-stream"})
        found: msgspec.Struct | bytes
        if request.method == "POST":
            if not accepts_type(request.headers.get("Content-Type"), ("application/json",)):
                raise RefusedError(415, "send application/json")
            found = await self._routes.ask(name, await _body(request), viewer)
        elif request.method == "GET":
            found = await self._routes.show(name, request.query, viewer)
        else:
            raise RefusedError(405, "the dashboard only answers questions")
        body = found if isinstance(found, bytes) else msgspec.json.encode(found)
        response = web.Response(body=body, headers=_JSON)
        if len(body) > PACK_FROM and "gzip" in request.headers.get("Accept-Encoding", ""):
            response.enable_compression(web.ContentCoding.gzip)
        return response

    async def _viewer(self, request: web.BaseRequest) -> Viewer:
        return await self.access.viewer(request, await self._routes.namespaces() if self.access.asks else ())

    async def _login(self, request: web.BaseRequest, *, out: bool) -> web.Response:
        if request.method != "POST":
            raise RefusedError(405, "send a token by POST")
        if not accepts_type(request.headers.get("Content-Type"), ("application/json",)):
            raise RefusedError(415, "send application/json")
        token = "" if out else _token_in(await _body(request))
        if not out:
            await self.access.viewer(_WithToken(request, token), await self._routes.namespaces())  # type: ignore[arg-type]
        cookie = cookie_with(token, secure=request.secure)
        return web.Response(status=204, headers={**_SAFE, "Cache-Control": "no-store", "Set-Cookie": cookie})


class _WithToken:
    """A request as it would be with a token, to try that."""

    def __init__(self, request: web.BaseRequest, token: str) -> None:
        self.headers = {"Authorization": f"Bearer {token}"}
        self.transport = request.transport


def _token_in(body: bytes) -> str:
    try:
        token = msgspec.json.decode(body, type=dict[str, str]).get("token", "")
    except msgspec.DecodeError:
        raise RefusedError(400, 'send {"token": "…"}') from None
    if (
        not token
        or len(token) > LONGEST_TOKEN
        or not token.isascii()
        or not token.isprintable()
        or set(token) & set(' ;,"\\')
    ):
        raise RefusedError(400, "this is no token: it has letters, digits, dots, dashes and underscores")
    return token


async def _body(request: web.BaseRequest) -> bytes:
    pieces, size = [], 0
    with contextlib.suppress(asyncio.IncompleteReadError):
        while piece := await request.content.readany():
            size += len(piece)
            if size > BODY_LIMIT:
                raise RefusedError(413, f"a question has at most {BODY_LIMIT} bytes")
            pieces.append(piece)
    return b"".join(pieces)


def _problem(status: int, sentence: str, *, login: bool = False) -> web.Response:
    body = msgspec.json.encode(NoAnswer(error=sentence, login=login))
    return web.Response(status=status, body=body, headers=_JSON)


INDEX: Final = "index.html"
_TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
}
_FOR_EVER: Final = "public, max-age=31536000, immutable"


class StaticFile(NamedTuple):
    """A file of the page."""

    content_type: str
    body: bytes
    packed: bytes
    etag: str
    caching: str


def read_static_files() -> dict[str, StaticFile]:
    """The files by path below the page's own; nothing where the page was not built.

    Names hold a hash of what is in the file, so browsers keep them for ever; only `index.html` is asked for again.
    """
    found: dict[str, StaticFile] = {}
    folders = [("", files("podium_dashboard") / "static")]
    for prefix, folder in folders:
        if not folder.is_dir():
            continue
        for each in sorted(folder.iterdir(), key=lambda entry: entry.name):
            path = f"{prefix}{each.name}"
            if each.is_dir():
                folders.append((f"{path}/", each))
            elif (content_type := _TYPES.get(path.rpartition(".")[2])) is not None:
                found[path] = _read(content_type, each.read_bytes(), hashed=bool(prefix))
    return found


def _read(content_type: str, body: bytes, *, hashed: bool) -> StaticFile:
    digest = hashlib.sha256(body).hexdigest()[:16]
    packed = gzip.compress(body, 6, mtime=0)
    return StaticFile(content_type, body, packed, f'"{digest}"', _FOR_EVER if hashed else "no-cache")


STALL: Final = 60.0
"""Seconds that a viewer may leave a tick unread."""
_MISSED: Final = b"event: missed\ndata: {}\n\n"


async def send_ticks(
    feed: Feed, viewer: Viewer, request: web.BaseRequest, headers: Mapping[str, str]
) -> web.StreamResponse:
    """Send until the viewer leaves or stops reading."""
    await feed.ready()
    response = web.StreamResponse(headers=headers)
    await response.prepare(request)
    feed.viewers += 1
    seen = feed.number
    try:
        while True:
            moment = await feed.next_moment(seen)
            if moment is None:
                data = b"event: problem\ndata: " + msgspec.json.encode(NoAnswer(error=feed.problem)) + b"\n\n"
            else:
                missed = _MISSED if moment.number > seen + 1 else b""
                seen = moment.number
                data = missed + b"event: tick\ndata: " + moment.encoded(viewer) + b"\n\n"
            async with asyncio.timeout(STALL):
                await response.write(data)
    except (ConnectionError, TimeoutError):
        if request.transport is not None:
            request.transport.abort()
    finally:
        feed.viewers -= 1
    return response
