"""A TCP proxy that misbehaves on command: what lies between a client and a server in bad weather.

It passes bytes on and does not look at them, so TLS goes through untouched and certificates for 127.0.0.1 still fit.
It runs in a thread of its own: its methods may be called both from plain tests and from inside an event loop, and have
taken effect when they return.

    with TcpProxy(control_plane.server) as proxy:
        kubeconfig = control_plane.write_kubeconfig(path, server=proxy.url)
        proxy.cut()
"""

import asyncio
import socket
import struct
import threading
from collections.abc import Coroutine
from functools import partial
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

LOOPBACK = "127.0.0.1"
_PIECE = 1 << 16


class TcpProxy:
    """Listens on `port` of the loopback (`url` has it) and connects to the server at the address `server`.

    accepted: connections made through it so far. connections: those that are open now.
    """

    def __init__(self, server: str) -> None:
        address = urlsplit(server)
        if address.hostname is None or address.port is None:
            raise ValueError(f"{server} is not an address with a port; write it like https://127.0.0.1:6443")
        self._scheme, self._target = address.scheme, (address.hostname, address.port)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy")
        self._listener: socket.socket | None = None
        self._open: dict[_Connection, asyncio.Task[None]] = {}
        self._stall_new = False
        self._bytes_for_new: int | None = None
        self._delay = 0.0
        self.port = 0
        self.accepted = 0

    def __enter__(self) -> Self:
        self._thread.start()
        self.accept()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.refuse()
        self.cut()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def url(self) -> str:
        return f"{self._scheme}://{LOOPBACK}:{self.port}"

    @property
    def connections(self) -> int:
        return len(self._open)

    def cut(self) -> None:
        """Reset every open connection; new ones are welcome."""
        self._do(self._cut())

    def refuse(self) -> None:
        """Refuse new connections until `accept`; open ones live on."""
        self._do(self._refuse())

    def accept(self) -> None:
        """Take connections again, at the same port."""
        self._do(self._accept())

    def stall(self, *, new: bool = False) -> None:
        """Let nothing through the open connections any more, nor through `new` ones, without closing them."""
        self._do(self._set_stalled(True, new))

    def resume(self) -> None:
        """End a stall, and pass on what has piled up."""
        self._do(self._set_stalled(False, False))

    def delay(self, seconds: float) -> None:
        """Hold up every piece that passes, either way, for so long."""
        self._delay = seconds

    def truncate(self, after: int | None) -> None:
        """Close each connection, open or new, in the middle of what the server sends: after so many bytes more."""
        self._do(self._truncate(after))

    def _do(self, action: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(action, self._loop).result(timeout=30)

    async def _accept(self) -> None:
        if self._listener is None:
            self._listener = socket.create_server((LOOPBACK, self.port), backlog=100)
            self._listener.setblocking(False)
            self.port = self._listener.getsockname()[1]
            # Not awaited: a wait that is cancelled at the wrong moment loses the connection it has just accepted.
            self._loop.add_reader(self._listener, self._take, self._listener)

    async def _refuse(self) -> None:
        if self._listener is not None:
            self._loop.remove_reader(self._listener)
            self._listener.close()
            self._listener = None

    async def _cut(self) -> None:
        for connection in self._open:
            connection.rude = True
        await _ended(list(self._open.values()))

    async def _set_stalled(self, stalled: bool, new: bool) -> None:
        self._stall_new = new
        for connection in self._open:
            connection.set_stalled(stalled)

    async def _truncate(self, after: int | None) -> None:
        self._bytes_for_new = after
        for connection in self._open:
            connection.bytes_left = after

    def _take(self, listener: socket.socket) -> None:
        try:
            client, _ = listener.accept()
        except OSError:  # it gave up before its turn came
            return
        client.setblocking(False)
        self.accepted += 1
        connection = _Connection(self._stall_new, self._bytes_for_new)
        task = self._open[connection] = self._loop.create_task(self._pass_on(connection, client))
        task.add_done_callback(partial(self._forget, connection, client))  # even of one that was cut before it began

    def _forget(self, connection: "_Connection", client: socket.socket, _: asyncio.Task[None]) -> None:
        del self._open[connection]
        client.close()

    async def _pass_on(self, connection: "_Connection", client: socket.socket) -> None:
        with client, socket.socket() as server:
            server.setblocking(False)
            try:
                await self._loop.sock_connect(server, self._target)
                there = asyncio.create_task(self._pump(connection, client, server))
                back = asyncio.create_task(self._pump(connection, server, client, from_server=True))
                try:
                    await asyncio.wait([there, back], return_when=asyncio.FIRST_COMPLETED)
                finally:
                    await _ended([there, back])
            except OSError:
                pass
            finally:
                if connection.rude:
                    for end in (client, server):  # closed without a farewell: that is a reset
                        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    async def _pump(
        self, connection: "_Connection", source: socket.socket, sink: socket.socket, *, from_server: bool = False
    ) -> None:
        while piece := await self._loop.sock_recv(source, _PIECE):
            await connection.flowing.wait()
            if self._delay:
                await asyncio.sleep(self._delay)
            if from_server and connection.bytes_left is not None:
                piece = piece[: connection.bytes_left]
                connection.bytes_left -= len(piece)
            await self._loop.sock_sendall(sink, piece)
            if from_server and connection.bytes_left == 0:
                return


class _Connection:
    """rude: it ends with a reset. bytes_left: how much the server may still send through it."""

    def __init__(self, stalled: bool, bytes_left: int | None) -> None:
        self.rude = False
        self.bytes_left = bytes_left
        self.flowing = asyncio.Event()
        self.set_stalled(stalled)

    def set_stalled(self, stalled: bool) -> None:
        if stalled:
            self.flowing.clear()
        else:
            self.flowing.set()


async def _ended(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
