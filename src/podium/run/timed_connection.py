"""Bounds everything on an HTTP connection by one deadline.

The time limits of sockets are for one wait each: a server that sends a byte now and then could hold a caller for ever.
Here each wait gets what is left until the deadline.
"""

from __future__ import annotations

import http.client
import io
import select
import socket
from collections.abc import Callable
from typing import Any

_CHUNK = 1 << 20
_QUICK_ACK: int | None = getattr(socket, "TCP_QUICKACK", None)


class TimedConnection:
    """An open connection, with the time by which what goes on over it must be done."""

    def __init__(self, connected: socket.socket, host: str, port: int, now: Callable[[], float]) -> None:
        self.fresh = True
        self._connected = connected
        self._socket = _TimedSocket(connected, now)
        self.http = http.client.HTTPConnection(host, port)
        self.http.sock = self._socket

    def begin(self, deadline: float) -> None:
        self._socket.deadline = deadline

    @property
    def reusable(self) -> bool:
        """Whether the other side means to keep it open; it is not fresh from then on."""
        self.fresh = False
        return self.http.sock is not None

    @property
    def usable(self) -> bool:
        """Whether nothing came since the last reply: what would come is the end."""
        poll = select.poll()
        poll.register(self._connected.fileno(), select.POLLIN)
        return not poll.poll(0)

    def close(self) -> None:
        self.http.close()
        self._connected.close()


class _TimedSocket:
    """What HTTPConnection needs of a socket, with one deadline over all."""

    def __init__(self, connected: socket.socket, now: Callable[[], float]) -> None:
        self._socket = connected
        self._now = now
        self.deadline = 0.0

    def wait_at_most_till_deadline(self) -> socket.socket:
        left = self.deadline - self._now()
        if left <= 0:
            raise TimeoutError("timed out")
        self._socket.settimeout(left)
        return self._socket

    def sendall(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[self.wait_at_most_till_deadline().send(rest[:_CHUNK]) :]

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Stream(self))

    def close(self) -> None:
        """HTTPConnection is done with it; a reply that ends with the connection may still have to be read."""


class _Stream(io.RawIOBase):
    """The receiving side; closing it leaves the connection open."""

    def __init__(self, connected: _TimedSocket) -> None:
        self._connected = connected

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        connected = self._connected.wait_at_most_till_deadline()
        if _QUICK_ACK is not None:
            # A server that sends head and body apart holds the body back until we have acknowledged the head, which
            # the kernel would put off for 40 ms.
            connected.setsockopt(socket.IPPROTO_TCP, _QUICK_ACK, 1)
        return connected.recv_into(buffer)
