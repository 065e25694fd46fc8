"""Serves the pages that plugins offer, each on a port of its own.

It listens on loopback unless asked otherwise, without authentication; pages of other sites in a browser are refused. A
port that is taken is reported, and the process goes on without the page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from typing import Final, NamedTuple

from aiohttp import web

from podium.framework.plugin import Plugin
from podium.framework.plugin_extras import PluginPage
from podium.framework.profile import ProfileRuntime
from podium.serving import address
from podium.serving.browser_guard import FORBIDDEN, BrowserGuard
from podium.serving.listener import WebPort
from podium.serving.log import LOG

LOOPBACK: Final = "127.0.0.1"
GRACE: Final = 1.0
IDLE_TIMEOUT: Final = 30.0
"""Seconds in which a connection must bring the whole head of its next request, or it is closed."""
MOST_CONNECTIONS: Final = 64
_HEADERS: Final = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Server": "podium"}


class PageAddress(NamedTuple):
    """Where a page is to be served."""

    port: int
    """0: nowhere."""
    host: str = LOOPBACK
    option: str = ""
    """What a user gives another port with."""


class PageServer:
    """The server of one page."""

    def __init__(self, page: PluginPage, *, host: str = LOOPBACK, port: int | None = None) -> None:
        self._page = page
        self._host = host
        self.port = page.port if port is None else port
        self._guard = BrowserGuard(host, own_pages=True)
        self._served: WebPort | None = None

    async def start(self) -> str | None:
        """Listen; what is wrong where that cannot be done."""
        app = web.Application()
        app.router.add_get("/{path:.*}", self._answer)
        self._served = WebPort(app, most=MOST_CONNECTIONS, idle_timeout=IDLE_TIMEOUT, grace=GRACE)
        try:
            self.port = await self._served.start(self._host, self.port)
        except OSError as error:
            return f"the {self._page.title} cannot be served on {self._host}:{self.port}: {error.strerror or error}"
        return None

    async def stop(self) -> None:
        if self._served is not None:
            await self._served.stop()
            self._served = None

    async def _answer(self, request: web.Request) -> web.Response:
        headers = request.headers
        refusal = self._guard.refusal(headers.get("Host"), headers.get("Origin"), headers.get("Sec-Fetch-Site"))
        if refusal is not None:
            return web.Response(status=FORBIDDEN, text=f"{refusal}\n", headers=_HEADERS)
        content_type, body = self._page.answer(request.path, request.query, headers.get("Accept", ""))
        if isinstance(body, str):
            return web.Response(text=body, content_type=content_type, headers=_HEADERS)
        return web.Response(body=body, content_type=content_type, headers=_HEADERS)


async def serve_pages(
    profiles: Mapping[str, ProfileRuntime], addresses: Mapping[str, PageAddress], stack: AsyncExitStack
) -> list[PageServer]:
    """Serve the pages of all plugins until `stack` closes; `addresses` has those that are not served where they say."""
    servers = []
    for page in _pages_of(profiles):
        where = addresses.get(page.name, PageAddress(page.port))
        if not where.port:
            continue
        server = PageServer(page, host=where.host, port=where.port)
        problem = await server.start()
        if problem is not None:
            LOG.warning("%s; give another port with %s" if where.option else "%s%s", problem, where.option)
            continue
        stack.push_async_callback(server.stop)
        LOG.info("serving the %s on http://%s", page.title, address(where.host, server.port))
        servers.append(server)
    return servers


def _pages_of(profiles: Mapping[str, ProfileRuntime]) -> Iterator[PluginPage]:
    """One page for each name; a plugin that several profiles have is asked in the first of them."""
    by_class: dict[type[Plugin], list[Plugin]] = {}
    for runtime in profiles.values():
        for plugin in runtime.plugins.values():
            by_class.setdefault(type(plugin), []).append(plugin)
    names = set()
    for first, *others in by_class.values():
        try:
            page = first.page(others)
        except Exception as error:  # whatever the plugin raises: the process runs without its page
            LOG.warning('plugin "%s" has no page: %s: %s', first.name, type(error).__name__, error)
            continue
        if page is not None and page.name not in names:
            names.add(page.name)
            yield page
