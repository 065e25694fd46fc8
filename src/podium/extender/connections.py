"""Receives requests: the usual ones the short way, all others through aiohttp.

kube-scheduler sends thousands of POSTs a second of the same form: a path, a length, a body. Reading these takes a few
lines here and a third of the time it takes a general server. A connection that brings anything else (GET, chunks,
`Expect`, a body that is too large, a head that is odd in any way) is handed to aiohttp for good, with all it has sent.
The same handler answers either way.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from typing import NamedTuple, cast

from podium.extender.handler import ExtenderHandler, InFlightLimits
from podium.extender.responses import Body
from podium.extender.routes import BIND, Endpoint
from podium.extender.service import Reply
from podium.serving.browser_guard import BrowserGuard, accepts_type
from podium.serving.listener import BoundedListener

LONGEST_HEAD = 16 << 10
SLOWEST_BODY = 30.0
"""Seconds within which a request has to be here as a whole."""

LONGEST_IDLE = 180.0
"""Seconds for which a connection may bring nothing; kube-scheduler closes its own after 90."""

MOST_HEADS = 256
JSON_TYPES = ("application/json",)
ANYWHERE = BrowserGuard("0.0.0.0")

_END = b"\r\n\r\n"
_LENGTH = b"\r\nContent-Length: "
_LONGEST_LENGTH = 15
_REQUEST_LINE = re.compile(rb"POST (/[!-$&-~]*) HTTP/1\.1")
_UNUSUAL = frozenset(
    (b"connection", b"content-encoding", b"expect", b"origin", b"te", b"trailer", b"transfer-encoding", b"upgrade")
)
_OF_BROWSERS = b"sec-"
_REASONS = {200: b"OK", 400: b"Bad Request", 500: b"Internal Server Error", 503: b"Service Unavailable"}


class Head(NamedTuple):
    """What a request's head says."""

    path: str
    length: int


def usual_head(head: bytes, guard: BrowserGuard = ANYWHERE) -> Head | None:
    """The path and the length of the body; None where anything is out of the ordinary.

    >>> usual_head(b"POST /a HTTP/1.1\\r\\nHost: b\\r\\nContent-Type: application/json\\r\\nContent-Length: 12")
    Head(path='/a', length=12)
    >>> usual_head(b"GET /healthz HTTP/1.1\\r\\nHost: b")
    """
    first, *lines = head.split(b"\r\n")
    line_found = _REQUEST_LINE.fullmatch(first)
    if line_found is None or b"?" in first:
        return None
    length, is_json = None, False
    for line in lines:
        name, colon, value = line.partition(b":")
        name = name.lower()
        if not colon or name in _UNUSUAL or not name.isascii() or name != name.strip():
            return None
        if name.startswith(_OF_BROWSERS) or (name == b"host" and not guard.allows_host(_text(value))):
            return None
        if name == b"content-type":
            is_json = accepts_type(_text(value), JSON_TYPES)
        if name == b"content-length":
            value = value.strip()
            if length is not None or not value.isdigit() or len(value) > _LONGEST_LENGTH:
                return None
            length = int(value)
    return None if length is None or not is_json else Head(line_found[1].decode("ascii"), length)


def _text(value: bytes) -> str:
    return value.strip().decode("latin-1")


class Heads:
    """Heads seen before, by all of them but the length: what a client sends differs in nothing else."""

    def __init__(self, guard: BrowserGuard = ANYWHERE) -> None:
        self._guard = guard
        self._paths: dict[bytes, str] = {}

    def read(self, head: bytes) -> Head | None:
        """The same as `usual_head`, sooner."""
        at = head.find(_LENGTH)
        if at < 0:
            return usual_head(head, self._guard)
        end = head.find(b"\r\n", at + len(_LENGTH))
        digits = head[at + len(_LENGTH) :] if end < 0 else head[at + len(_LENGTH) : end]
        rest = head[:at] if end < 0 else head[:at] + head[end:]
        path = self._paths.get(rest)
        if path is not None and digits.isdigit() and len(digits) <= _LONGEST_LENGTH:
            return Head(path, int(digits))
        found = usual_head(head, self._guard)
        if found is not None and len(self._paths) < MOST_HEADS:
            self._paths[rest] = found.path
        return found


class ExtenderConnection(asyncio.Protocol):
    """One connection, for as long as it sends nothing but usual requests. `general` makes what it is handed to."""

    def __init__(
        self,
        handler: ExtenderHandler,
        general: Callable[[], asyncio.Protocol],
        in_flight: InFlightLimits,
        open_ones: set[ExtenderConnection],
        heads: Heads,
        handed_over: Callable[[asyncio.Protocol, asyncio.Transport], None],
        listener: BoundedListener,
        *,
        needs_certificate: bool,
    ) -> None:
        self._handler = handler
        self._general = general
        self._in_flight = in_flight
        self._open_ones = open_ones
        self._heads = heads
        self._handed_over = handed_over
        self._listener = listener
        self._needs_certificate = needs_certificate
        self._transport: asyncio.Transport
        self._loop = asyncio.get_running_loop()
        self._pieces: list[bytes] = []
        self._have = 0
        self._length = -1
        """Of the body that is being received; -1 before its head has come."""
        self._endpoint: Endpoint
        self._reserved = 0
        """Bytes of requests on this connection that are in flight."""
        self._timer: asyncio.TimerHandle | None = None
        self._busy = self._ending = self._unread = self._requested = False
        self._quiet_since = self._loop.time()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._open_ones.add(self)
        self._in_flight.usual_connections += 1
        if self._in_flight.crowded or (self._needs_certificate and not transport.get_extra_info("peercert")):
            self._hand_over(b"")

    def connection_lost(self, _error: Exception | None) -> None:
        self._leave()
        self._let_go()
        self._release()

    def close_if_quiet(self, now: float) -> None:
        """Close where nothing was asked, or no answer read, for too long."""
        if self._unread and now - self._quiet_since > SLOWEST_BODY:
            self._transport.abort()
        elif not (self._busy or self._have) and now - self._quiet_since > LONGEST_IDLE:
            self._transport.close()

    def _leave(self) -> None:
        self._open_ones.discard(self)
        self._in_flight.usual_connections -= 1

    def end(self) -> None:
        """Close, but send what is being answered first."""
        self._ending = True
        if not self._busy:
            self._transport.close()

    def pause_writing(self) -> None:
        """Stop reading from a client that does not read its answers."""
        self._unread, self._quiet_since = True, self._loop.time()
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._unread, self._quiet_since = False, self._loop.time()
        self._transport.resume_reading()
        self._release()
        if not self._busy:
            self._go_on()

    def data_received(self, data: bytes) -> None:
        self._pieces.append(data)
        self._have += len(data)
        if not self._busy:
            self._go_on()

    def _go_on(self) -> None:
        """Answer what is here as a whole."""
        while self._have and not self._busy and not self._unread:
            if self._length < 0 and not self._read_head():
                return
            if self._have < self._length:
                self._wait()
                return
            body = self._take_body()
            if self._endpoint.verb == BIND:
                self._busy = True
                self._listener.begins(self)
                task = self._loop.create_task(self._handler.answer(self._endpoint, body))
                task.add_done_callback(self._answer_later)
                return
            self._send(self._handler.answer_now(self._endpoint, body))
            if not self._requested:
                self._requested = True
                self._listener.ends(self)

    def _read_head(self) -> bool:
        """Whether the head has come and is a usual one, with the room for its body."""
        data = b"".join(self._pieces) if len(self._pieces) > 1 else self._pieces[0]
        end = data.find(_END, 0, LONGEST_HEAD)
        if end < 0:
            self._pieces = [data]
            if self._have >= LONGEST_HEAD or not b"POST /".startswith(data[:6]):
                self._hand_over(data)
            else:
                self._wait()
            return False
        head = self._heads.read(data[:end])
        endpoint = None if head is None else self._handler.find(head.path)
        if head is None or endpoint is None or head.length > self._handler.max_body:
            self._hand_over(data)
            return False
        if not self._in_flight.has_room_for(head.length):
            self._hand_over(data)
            return False
        self._endpoint, self._length = endpoint, head.length
        self._in_flight.bytes += head.length
        self._reserved += head.length
        self._pieces, self._have = [data[end + 4 :]], len(data) - end - 4
        return True

    def _take_body(self) -> bytes:
        data = b"".join(self._pieces) if len(self._pieces) > 1 else self._pieces[0]
        body, rest = (data, b"") if len(data) == self._length else (data[: self._length], data[self._length :])
        self._let_go()
        self._pieces, self._have = [rest] if rest else [], len(rest)
        return body

    def _let_go(self) -> None:
        """Nothing is being received any more."""
        self._length = -1
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _release(self) -> None:
        """Nothing of this connection is in flight any more."""
        self._in_flight.bytes -= self._reserved
        self._reserved = 0

    def _wait(self) -> None:
        if self._timer is None:
            self._timer = self._loop.call_later(SLOWEST_BODY, self._too_slow)

    def _too_slow(self) -> None:
        self._timer = None
        self._transport.write(b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
        self._transport.close()

    def _hand_over(self, data: bytes) -> None:
        """Let the general server go on from here, as if it had been there from the start."""
        self._let_go()
        self._release()
        self._pieces, self._have, self._busy = [], 0, True
        self._leave()
        server = self._general()
        self._handed_over(server, self._transport)
        self._transport.set_protocol(server)
        server.connection_made(self._transport)
        if data:
            server.data_received(data)

    def _answer_later(self, task: asyncio.Task[Reply]) -> None:
        self._busy = False
        self._listener.ends(self)
        if not task.cancelled() and not self._transport.is_closing():
            self._send(task.result())
            if self._ending:
                self._transport.close()
            else:
                self._go_on()

    def _send(self, reply: Reply) -> None:
        body = reply.body
        length = len(body) if isinstance(body, bytes) else sum(map(len, body))
        head = (b"HTTP/1.1 %d %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\nServer: podium\r\n\r\n") % (
            reply.status,
            _REASONS.get(reply.status, b"Error"),
            length,
        )
        send(self._transport, head, body)
        self._quiet_since = self._loop.time()
        if not self._unread:
            self._release()


def send(transport: asyncio.Transport, head: bytes, body: Body) -> None:
    if isinstance(body, bytes):
        transport.write(head + body)
    else:
        transport.writelines([head, *body])
