"""Connects two asyncio protocols without sockets: bytes between them take their time.

    client's protocol ── End ══ Link ══ End ── server's protocol

What one side writes reaches the other in order, after a latency drawn for each piece; pieces may come in two. A
side that closes is heard of after what it wrote; one that aborts, or whose process is killed, resets the connection.
Each protocol is called within the process that made it, so that a paused one hears nothing. On top, a link can be cut,
go silent without a word, get slow, or be cut after so many more bytes.
"""

from __future__ import annotations

import asyncio
import contextvars
import random
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

import aiohttp
from aiohttp.client_proto import ResponseHandler

from tools.kit.virtual_time import VirtualProcess, current_process

FASTEST, SLOWEST = 0.0002, 0.002
"""Seconds that a piece takes in one direction, on a good day."""
SPLIT = 0.05
"""How many of the pieces longer than one byte come in two."""
MAX_IDLE = 60.0
"""Seconds after which aiohttp's session, as Podium sets it up, uses a connection no more."""

Factory = Callable[[], asyncio.BaseProtocol]


class Filter(Protocol):
    """Changes bytes on their way."""

    in_one_piece: bool
    """Whether what was just given must arrive as a whole or not at all."""

    def __call__(self, data: bytes) -> bytes: ...


class Network:
    """Who listens where, and the links there are."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._listening: dict[tuple[str, int], tuple[Factory, contextvars.Context]] = {}
        self._links: dict[Link, None] = {}
        self._made = 0
        self.down = False
        """Whether connections are refused, as by a machine on which no process listens."""
        self.connected: Callable[[Link], None] = lambda _link: None
        """Called with every new link."""
        self.sent: Callable[[Link, bytes], None] = lambda _link, _data: None
        """Called with what clients write, at the moment they do."""
        self.cut_off: dict[VirtualProcess, None] = {}
        """Processes without a network: what they send is lost, and connecting takes for ever."""

    def listen(self, host: str, port: int, factory: Factory) -> None:
        """Answer connections to this address, within the process that calls this."""
        self._listening[host, port] = (factory, contextvars.copy_context())

    async def connect(self, factory: Factory, host: str, port: int) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        process = current_process()
        await asyncio.sleep(self.latency() + self.latency())
        while process in self.cut_off:
            await asyncio.sleep(0.5)
        listener = self._listening.get((host, port))
        if listener is None or self.down or (process is not None and process.killed):
            raise ConnectionRefusedError(111, "Connection refused")
        accept, context = listener
        self._made += 1
        link = Link(self, process, self._made)
        self._links[link] = None
        self.connected(link)
        protocol = factory()
        link.client.attach(protocol, contextvars.copy_context())
        link.server.attach(context.copy().run(accept), context)
        return link.client, protocol

    def links(self, process: VirtualProcess | None = None) -> list[Link]:
        """All that are open, oldest first; of one process if it is given."""
        return [link for link in self._links if process is None or link.process is process]

    def hang_up(self, process: VirtualProcess) -> None:
        """The process is gone: its connections break."""
        for link in self.links(process):
            link.cut()

    def latency(self) -> float:
        return self._rng.uniform(FASTEST, SLOWEST)

    def pieces(self, data: bytes) -> list[bytes]:
        if len(data) > 1 and self._rng.random() < SPLIT:
            at = self._rng.randrange(1, len(data))
            return [data[:at], data[at:]]
        return [data]

    def forget(self, link: Link) -> None:
        self._links.pop(link, None)


class Link:
    """A connection, as the network sees it; `process` made it."""

    def __init__(self, network: Network, process: VirtualProcess | None, number: int) -> None:
        self.network = network
        self.process = process
        self.number = number
        self.silent = False
        """Whether everything from now on is lost, in both directions, and neither side notices."""
        self.slowness = 0.0
        """Seconds that each piece takes on top."""
        self.client_name = "outside" if process is None else process.name
        self.client = End(self, {"sockname": (self.client_name, number), "peername": ("api", 80)})
        self.server = End(self, {"sockname": ("api", 80), "peername": (self.client_name, number)})
        self.client.other, self.server.other = self.server, self.client

    def cut(self) -> None:
        """The connection breaks for both sides; what is under way is lost."""
        self.client.lose(ConnectionResetError(104, "Connection reset by peer"))
        self.server.lose(ConnectionResetError(104, "Connection reset by peer"))


class End(asyncio.Transport):
    """One side of a link: what it writes goes to `other`."""

    other: End

    def __init__(self, link: Link, extra: dict[str, Any]) -> None:
        super().__init__(extra)
        self.link = link
        self.filter: Filter | None = None
        """Changes what is written from here, on its way."""
        self.cut_after: int | None = None
        """Bytes that may still be written from here before the link is cut."""
        self._loop = asyncio.get_running_loop()
        self._protocol: Any = None
        self._context = contextvars.Context()
        self._arriving: deque[tuple[float, bytes | None]] = deque()  # None: the other side has closed
        self._timer: asyncio.TimerHandle | None = None
        self._reading = True
        self._closing = False
        self._lost = False

    def attach(self, protocol: asyncio.BaseProtocol, context: contextvars.Context) -> None:
        self._protocol = protocol
        self._context = context
        context.copy().run(protocol.connection_made, self)

    # What the protocol calls

    def write(self, data: bytes | bytearray | memoryview) -> None:
        process = self.link.process
        if self._closing or (process is not None and process.killed and self is self.link.client):
            return
        content = bytes(data)
        if self is self.link.client:
            self.link.network.sent(self.link, content)
        if self.filter is not None:
            content = self.filter(content)
            if self.filter.in_one_piece:
                self._put(content)
                return
        if self.cut_after is not None and len(content) > self.cut_after:
            content, self.cut_after = content[: self.cut_after], 0
            self._send(content)
            delay = self.link.network.latency() + self.link.slowness
            self._loop.call_later(delay + 0.01, self.link.cut, context=contextvars.Context())
            self.link.silent = True
            return
        if self.cut_after is not None:
            self.cut_after -= len(content)
        self._send(content)

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            self._put(None)
            self._loop.call_soon(self.lose, None, context=self._context)

    def abort(self) -> None:
        if self._closing and self._lost:
            return
        self._closing = True
        if not self.link.silent:
            reset = ConnectionResetError(104, "Connection reset by peer")
            due = max(self._loop.time(), self.other.last_arrival) + self.link.network.latency()
            self._loop.call_at(due, self.other.lose, reset, context=contextvars.Context())
        self._loop.call_soon(self.lose, None, context=self._context)

    def is_closing(self) -> bool:
        return self._closing

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        self._reading = True
        self._set_timer()

    def is_reading(self) -> bool:
        return self._reading

    def get_write_buffer_size(self) -> int:
        return 0

    def can_write_eof(self) -> bool:
        return False

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        protocol: asyncio.BaseProtocol = self._protocol
        return protocol

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    # What the network does

    @property
    def last_arrival(self) -> float:
        return self._arriving[-1][0] if self._arriving else 0.0

    def lose(self, error: Exception | None) -> None:
        """The connection is over for this side."""
        self._closing = True
        if self._lost:
            return
        self._lost = True
        self._arriving.clear()
        self.link.network.forget(self.link)
        # Within the process of this side, and after whatever it is doing now.
        self._loop.call_soon(self._protocol.connection_lost, error, context=self._context)

    def _send(self, content: bytes) -> None:
        for piece in self.link.network.pieces(content):
            self._put(piece)

    def _put(self, piece: bytes | None) -> None:
        """On its way to the other side, behind what is under way already."""
        if self.link.silent:
            return
        delay = self.link.network.latency() + self.link.slowness
        self.other.expect(max(self._loop.time() + delay, self.other.last_arrival), piece)

    def expect(self, due: float, piece: bytes | None) -> None:
        if not self._lost:
            self._arriving.append((due, piece))
            self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is None and self._arriving and self._reading and not self._lost:
            self._timer = self._loop.call_at(self._arriving[0][0], self._arrive, context=self._context)

    def _arrive(self) -> None:
        self._timer = None
        if self._arriving and self._reading and not self._lost:
            _due, piece = self._arriving.popleft()
            if piece is not None:
                self._protocol.data_received(piece)
            elif not self._protocol.eof_received():
                self.close()
        self._set_timer()


class Connector(aiohttp.BaseConnector):
    """For aiohttp's client: connections of the loop's network, by the name of the host and without TLS.

    aiohttp takes the age of idle connections from the machine's own clock, so that is done here, by the loop's.
    """

    def __init__(self, limit: int) -> None:
        super().__init__(limit=limit, keepalive_timeout=None)
        self._idle_since: weakref.WeakKeyDictionary[ResponseHandler, float] = weakref.WeakKeyDictionary()

    async def _get(self, key: Any, traces: Any) -> Any:
        idle = self._conns.get(key)
        while idle and self._loop.time() - self._idle_since[idle[0][0]] > MAX_IDLE:
            idle.popleft()[0].close()
        return await super()._get(key, traces)

    def _release(self, key: Any, protocol: ResponseHandler, *, should_close: bool = False) -> None:
        self._idle_since[protocol] = self._loop.time()
        super()._release(key, protocol, should_close=should_close)

    async def _create_connection(self, req: Any, traces: Any, timeout: aiohttp.ClientTimeout) -> ResponseHandler:
        try:
            async with asyncio.timeout(timeout.sock_connect):
                _, protocol = await self._loop.create_connection(self._factory, req.url.raw_host, req.port)
        except TimeoutError as error:
            raise aiohttp.ConnectionTimeoutError("no connection in time") from error
        except OSError as error:
            raise aiohttp.ClientConnectorError(req.connection_key, error) from error
        return protocol
