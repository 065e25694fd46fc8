"""A TCP proxy that misbehaves on command: what lies between a client and a server in bad weather.

It passes bytes on and does not look at them, so TLS goes through untouched and certificates for 127.0.0.1 still fit.
It runs in a thread of its own: its methods may be called from plain tests and from inside an event loop alike, and have
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
        self._listener: asyncio.Server | None = None
        self._open: set[_Connection] = set()
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
        self._do(_end_other_tasks())
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
            self._listener = await asyncio.start_server(self._connected, LOOPBACK, self.port)
            self.port = self._listener.sockets[0].getsockname()[1]

    async def _refuse(self) -> None:
        if self._listener is not None:
            self._listener.close()
            self._listener = None

    async def _cut(self) -> None:
        for connection in list(self._open):
            connection.reset()

    async def _set_stalled(self, stalled: bool, new: bool) -> None:
        self._stall_new = new
        for connection in self._open:
            connection.set_stalled(stalled)

    async def _truncate(self, after: int | None) -> None:
        self._bytes_for_new = after
        for connection in self._open:
            connection.bytes_left = after

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        connection = _Connection(writer, self._stall_new, self._bytes_for_new)
        self._open.add(connection)
        try:
            server_reader, server_writer = await asyncio.open_connection(*self._target)
            connection.writers.append(server_writer)
            await asyncio.gather(
                self._pump(connection, reader, server_writer, from_server=False),
                self._pump(connection, server_reader, writer, from_server=True),
            )
        except OSError:
            pass
        finally:
            self._open.discard(connection)
            connection.close()

    async def _pump(
        self,
        connection: "_Connection",
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        *,
        from_server: bool,
    ) -> None:
        while piece := await reader.read(_PIECE):
            await connection.flowing.wait()
            if self._delay:
                await asyncio.sleep(self._delay)
            if from_server and connection.bytes_left is not None:
                piece = piece[: connection.bytes_left]
                connection.bytes_left -= len(piece)
            writer.write(piece)
            await writer.drain()
            if from_server and connection.bytes_left == 0:
                break
        connection.close()


class _Connection:
    def __init__(self, writer: asyncio.StreamWriter, stalled: bool, bytes_left: int | None) -> None:
        self.writers = [writer]
        self.bytes_left = bytes_left
        self.flowing = asyncio.Event()
        self.set_stalled(stalled)

    def set_stalled(self, stalled: bool) -> None:
        if stalled:
            self.flowing.clear()
        else:
            self.flowing.set()

    def close(self) -> None:
        for writer in self.writers:
            writer.close()

    def reset(self) -> None:
        self.flowing.set()
        for writer in self.writers:
            transport = writer.transport
            if not transport.is_closing():
                own: socket.socket = transport.get_extra_info("socket")
                own.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # no farewell: a reset
            transport.abort()


async def _end_other_tasks() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
