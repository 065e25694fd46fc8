"""Serves an aiohttp application on a port of its own, within the listener's bounds."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable

from aiohttp import web

from podium.serving.listener import BoundedListener

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class WebPort:
    """An application that is served while this is started."""

    def __init__(self, app: web.Application, *, most: int, idle_timeout: float, grace: float) -> None:
        """At most `most` connections. Within `idle_timeout` seconds each has to bring the whole head of its next
        request; answers under way get `grace` seconds at the end."""
        app.middlewares.insert(0, self._noted)
        self._runner = web.AppRunner(
            app,
            access_log=None,
            shutdown_timeout=grace,
            handle_signals=False,
            keepalive_timeout=idle_timeout,
            lingering_time=grace,
            auto_decompress=False,  # nothing here reads a body: none is unpacked
        )
        self._most = most
        self.listener: BoundedListener | None = None

    async def start(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> int:
        """Listen; the port, which is any free one for 0. Raises OSError."""
        await self._runner.setup()
        assert self._runner.server is not None
        self.listener = BoundedListener(self._runner.server, self._most)
        try:
            await self.listener.start(host, port, tls)
        except OSError:
            await self.stop()
            raise
        return self.listener.port

    async def stop(self) -> None:
        if self.listener is not None:
            self.listener.stop()
            self.listener = None
        await self._runner.cleanup()

    @web.middleware
    async def _noted(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if self.listener is None:
            return await handler(request)
        self.listener.begins(request.protocol)
        try:
            return await handler(request)
        finally:
            self.listener.ends(request.protocol)
