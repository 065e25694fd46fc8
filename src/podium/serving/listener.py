"""Listens on a port: takes as many connections as there is room for, and closes silent ones to take others.

A process has one table of open files for all of its ports and all of its own connections. Whoever opens more of them
than a port may have (`most`) gets another's place: of those that have brought no request yet, the one that is here for
the longest is closed, then of those that have had their answers, then of those that do not read them. Where all are
busy, the new one is closed. So the next request is served, whatever else is open on this port or another.

The server says how a connection stands: it calls `begins` and `ends` around each answer, once the whole request is
here. A TLS handshake counts as a connection that has brought nothing.
"""

from __future__ import annotations

import asyncio
import errno
import resource
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from aiohttp import web

MOST_FILES = 8192
"""Open files that a process asks the system for; 1,024 are usual otherwise."""
SPARE_FILES = 384
"""Open files for everything else: connections of its own, watches, databases, other ports."""
SWEEP = 5.0
"""Seconds between two looks at what is open."""
UNREAD = 60.0
"""Seconds for which an answer may lie unread, without a byte of it leaving."""
HANDSHAKE = 10.0
GOODBYE = 5.0
"""Seconds for a TLS handshake, and for its end."""
BACKLOG = 128
PAUSE = 0.2
"""Seconds until the next try where the system has no room for a connection."""
_NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class _Accepted:
    """A connection, from when it was accepted."""

    __slots__ = ("connected", "task", "transport", "unread", "unread_since")

    def __init__(self, connected: socket.socket) -> None:
        self.connected = connected
        self.task: asyncio.Task[None] | None = None
        """Which makes a transport of it; during a handshake that takes a while."""
        self.transport: asyncio.Transport | None = None
        self.unread = 0
        self.unread_since = 0.0

    @property
    def gone(self) -> bool:
        return self.connected.fileno() < 0

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()
        else:  # a handshake is under way, which ends with the connection
            with suppress(OSError):
                self.connected.shutdown(socket.SHUT_RDWR)


class BoundedListener:
    """The connections of one port; `new_protocol` serves each."""

    def __init__(self, new_protocol: Callable[[], asyncio.BaseProtocol], most: int) -> None:
        self._new_protocol = new_protocol
        self._most = min(most, room_for_connections())
        self._tls: ssl.SSLContext | None = None
        self._sockets: list[socket.socket] = []
        self._open: dict[socket.socket, _Accepted] = {}
        self._answering: dict[asyncio.BaseProtocol, bool] = {}
        """Connections that have brought a request, and whether one is being answered."""
        self._sweeping: asyncio.TimerHandle | None = None
        self.port = 0

    @property
    def connections(self) -> int:
        return sum(not each.gone for each in self._open.values())

    async def start(self, host: str, port: int, tls: ssl.SSLContext | None = None) -> None:
        """Listen; port 0 takes any free one. Raises OSError."""
        loop = asyncio.get_running_loop()
        self._tls = tls
        found = await loop.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        try:
            for family, _, _, _, address in dict.fromkeys(found):
                self._sockets.append(_listening(family, (address[0], self.port or port, *address[2:])))
                self.port = self._sockets[0].getsockname()[1]
        except OSError:
            self.stop()
            raise
        for listening in self._sockets:
            loop.add_reader(listening, self._accept, listening)
        self._sweeping = loop.call_later(SWEEP, self._sweep)

    def stop(self) -> None:
        """Take no more; those that are open are their server's to end."""
        loop = asyncio.get_running_loop()
        if self._sweeping is not None:
            self._sweeping.cancel()
        for listening in self._sockets:
            loop.remove_reader(listening)
            listening.close()
        self._sockets.clear()
        for each in self._open.values():
            if each.transport is None:
                each.abort()

    def begins(self, protocol: asyncio.BaseProtocol) -> None:
        """A whole request is here, and is being answered."""
        self._answering[protocol] = True

    def ends(self, protocol: asyncio.BaseProtocol) -> None:
        """It is answered."""
        self._answering[protocol] = False

    def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(BACKLOG):
            try:
                connected, _ = listening.accept()
            except OSError as error:
                if error.errno in _NO_ROOM:
                    self._close_least()
                    loop.remove_reader(listening)
                    loop.call_later(PAUSE, self._listen_again, listening)
                return  # another time: no one has connected, or has left again
            if len(self._open) >= self._most and not self._make_room():
                connected.close()
                continue
            connected.setblocking(False)
            with suppress(OSError):
                connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            accepted = self._open[connected] = _Accepted(connected)
            accepted.task = loop.create_task(self._connect(accepted))

    def _listen_again(self, listening: socket.socket) -> None:
        if listening in self._sockets:
            asyncio.get_running_loop().add_reader(listening, self._accept, listening)

    async def _connect(self, accepted: _Accepted) -> None:
        loop, secured = asyncio.get_running_loop(), self._tls is not None
        with suppress(OSError):  # the client is gone, or speaks no TLS, or is too slow
            transport, _ = await loop.connect_accepted_socket(
                self._new_protocol,
                accepted.connected,
                ssl=self._tls,
                ssl_handshake_timeout=HANDSHAKE if secured else None,
                ssl_shutdown_timeout=GOODBYE if secured else None,
            )
            accepted.transport = transport

    def _make_room(self) -> bool:
        """Whether there is room for another connection, which another may have to give."""
        self._forget_closed()
        return len(self._open) < self._most or self._close_least()

    def _close_least(self) -> bool:
        """Close what is least needed; whether there was something."""
        by_need: list[list[_Accepted]] = [[], [], []]
        for each in self._open.values():
            if (need := self._need(each)) != _BUSY:
                by_need[need].append(each)
        least = next(filter(None, by_need), [])
        for each in least[: 1 + self._most // 32]:  # several, as looking at all of them takes time
            del self._open[each.connected]
            each.abort()
        return bool(least)

    def _need(self, accepted: _Accepted) -> int:
        transport = accepted.transport
        if transport is None:
            return _SILENT
        answering = self._answering.get(transport.get_protocol())
        if answering is None:
            return _SILENT
        if not answering:
            return _IDLE
        return _UNREAD if accepted.unread else _BUSY

    def _forget_closed(self) -> None:
        closed = [each for each in self._open.values() if each.gone]
        for each in closed:
            del self._open[each.connected]
        here = {each.transport.get_protocol() for each in self._open.values() if each.transport is not None}
        for protocol in [each for each in self._answering if each not in here]:
            del self._answering[protocol]

    def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        self._forget_closed()
        now = loop.time()
        for each in self._open.values():
            unread = 0 if each.transport is None else each.transport.get_write_buffer_size()
            if unread != each.unread or not unread:
                each.unread, each.unread_since = unread, now
            elif now - each.unread_since >= UNREAD:
                each.abort()
        self._sweeping = loop.call_later(SWEEP, self._sweep)


_SILENT, _IDLE, _UNREAD, _BUSY = range(4)
"""How much a connection is needed: the first are closed first."""


def _listening(family: int, address: tuple[Any, ...]) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.setblocking(False)
        made.bind(address)
        made.listen(BACKLOG)
    except OSError:
        made.close()
        raise
    return made


def room_for_connections() -> int:
    """How many connections a port may have, as far as open files go; asks the system for more of them first."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(MOST_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            soft = wanted
    return MOST_FILES if soft == resource.RLIM_INFINITY else max(soft - SPARE_FILES, soft // 2)


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
        listener = self.listener
        if listener is None:
            return await handler(request)
        listener.begins(request.protocol)
        try:
            return await handler(request)
        finally:
            listener.ends(request.protocol)
