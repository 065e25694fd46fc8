"""Speaks HTTP/1.1 with an API server: one request at a time on a connection that stays open.

Writes go this way rather than through aiohttp's session, which does for every request what a browser would need
(cookies, redirects, content types, a stream per body) at several times the CPU. Here a request is one write of bytes
that were joined once, and an answer is read into bytes: as long as Content-Length says, or in chunks, or until the
server closes. The caller gets certainty, too: before `send` nothing can have happened on the server.
"""

import asyncio
from typing import NamedTuple, cast

END_OF_HEAD = b"\r\n\r\n"
MAX_HEAD = 64 << 10
MAX_CHUNK_LINE = 1 << 10


class MalformedResponseError(Exception):
    """What came is not HTTP, or longer than allowed; says which."""


class AnswerTooLargeError(MalformedResponseError):
    """What came is more than an answer may have; asking again would bring it again."""


class WireResponse(NamedTuple):
    """A whole answer."""

    status: int
    head: bytes
    """The status line and the header lines, lower-cased."""
    body: bytes

    def header(self, name: bytes) -> bytes | None:
        """The value of a header, its name in lower case."""
        return _value(self.head, b"\r\n" + name + b":")


class WireConnection(asyncio.Protocol):
    """A connection, idle or in one exchange. `reusable` is False once it must not be asked again."""

    def __init__(self, loop: asyncio.AbstractEventLoop, limit: int) -> None:
        self._loop = loop
        self._limit = limit
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[WireResponse] | None = None
        self.reusable = False
        self.idle_since = 0.0
        self.deadline = 0.0
        self.lost: asyncio.Future[None] = loop.create_future()
        self._buffer = b""
        self._head: bytes | None = None
        self._status = 0
        self._length: int | None = None
        """Of the body, where the head tells; None for chunks and for a body that ends with the connection."""
        self._chunked = False
        self._left = 0
        """Bytes still to come of a chunk, with the line break behind it."""
        self._body = bytearray()

    def send(self, request: bytes, deadline: float) -> asyncio.Future[WireResponse]:
        """Sends; the answer comes, or TimeoutError, OSError or MalformedError, after which the connection is closed.
        A caller that stops waiting must `abort`; the pool calls `expire` when `deadline` has passed."""
        assert self._transport is not None
        self._waiter = waiter = self._loop.create_future()
        self.deadline = deadline
        self._transport.write(request)
        return waiter

    def expire(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(TimeoutError())
        self.abort()

    def abort(self) -> None:
        self.reusable = False
        if self._transport is not None:
            self._transport.abort()

    @property
    def waiting(self) -> bool:
        return self._waiter is not None and not self._waiter.done()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but its base class
        self.reusable = True

    def data_received(self, data: bytes) -> None:
        waiter = self._waiter
        if waiter is None or waiter.done():
            self.abort()  # nothing was asked: whatever this is, the next request must not take it for its answer
            return
        try:
            answer = self._feed(data)
        except (MalformedResponseError, ValueError) as error:
            waiter.set_exception(
                error if isinstance(error, MalformedResponseError) else MalformedResponseError(str(error))
            )
            self.abort()
            return
        if answer is not None:
            self._waiter = None
            waiter.set_result(answer)

    def eof_received(self) -> bool:
        return False  # the transport closes itself, and connection_lost tells the rest

    def connection_lost(self, exc: Exception | None) -> None:
        self.reusable = False
        self._transport = None
        self.lost.set_result(None)
        waiter = self._waiter
        if waiter is None or waiter.done():
            return
        if self._head is not None and self._length is None and not self._chunked and exc is None:
            waiter.set_result(self._complete(bytes(self._body)))
        elif isinstance(exc, OSError):
            waiter.set_exception(exc)
        else:
            waiter.set_exception(ConnectionResetError("the connection was closed before the whole answer came"))

    def _feed(self, data: bytes) -> WireResponse | None:
        """The answer, once `data` completes it."""
        if self._head is None:
            rest = self._read_head(self._buffer + data if self._buffer else data)
            if rest is None:
                return None
            data = rest
        if self._chunked:
            return self._read_chunks(self._buffer + data if self._buffer else data)
        length = self._length
        if len(data) == length and not self._body:  # the whole answer at once, as nearly always
            return self._complete(data)
        self._keep(data)
        if length is None or len(self._body) < length:
            return None
        if len(self._body) > length:
            raise MalformedResponseError("more came than Content-Length said")
        return self._complete(bytes(self._body))

    def _read_head(self, data: bytes) -> bytes | None:
        """What follows the head, or None if it is not whole yet. Interim answers (1xx) are passed over."""
        while True:
            end = data.find(END_OF_HEAD)
            if end < 0:
                if len(data) > MAX_HEAD:
                    raise MalformedResponseError("the answer's headers do not end")
                self._buffer = data
                return None
            head = data[:end].lower()
            if not head.startswith(b"http/1."):
                raise MalformedResponseError("the answer is not HTTP/1.1")
            status = int(head[9:12])
            data = data[end + 4 :]
            if status >= 200:
                break
        self._buffer = b""
        self._head = head
        self._status = status
        self._plan(status, head)
        return data

    def _plan(self, status: int, head: bytes) -> None:
        """How the body's end is found, and whether the connection outlives it."""
        if b"close" in (_value(head, b"\r\nconnection:") or b"") or head.startswith(b"http/1.0"):
            self.reusable = False
        length = _value(head, b"\r\ncontent-length:")
        self._chunked = _value(head, b"\r\ntransfer-encoding:") is not None
        if status in (204, 304):
            self._length, self._chunked = 0, False
        elif self._chunked or length is None:
            self._length = None
            self.reusable = self.reusable and self._chunked
        else:
            self._length = int(length)
            if self._length > self._limit:
                raise AnswerTooLargeError(f"the answer is larger than {self._limit} bytes")

    def _read_chunks(self, buffer: bytes) -> WireResponse | None:
        """The answer, once its last chunk is here. A chunk is kept as it comes, however small its pieces are."""
        position = 0
        while True:
            if self._left:
                part = buffer[position : position + self._left]
                self._body += part
                self._left -= len(part)
                if self._left:
                    return None
                del self._body[-2:]
                position += len(part)
            line_end = buffer.find(b"\r\n", position)
            if line_end < 0:
                if len(buffer) - position > MAX_CHUNK_LINE:
                    raise MalformedResponseError("a chunk's size does not end")
                break
            size = int(buffer[position:line_end].partition(b";")[0], 16)
            if size == 0:
                return self._end_of_chunks(buffer[line_end:])
            if size < 0 or len(self._body) + size > self._limit:
                raise AnswerTooLargeError(f"the answer is larger than {self._limit} bytes")
            position, self._left, self._buffer = line_end + 2, size + 2, b""
        self._buffer = buffer[position:]
        return None

    def _end_of_chunks(self, trailer: bytes) -> WireResponse | None:
        end = trailer.find(END_OF_HEAD)
        if end < 0:
            if len(trailer) > MAX_HEAD:
                raise MalformedResponseError("the answer's trailer does not end")
            self._buffer = b"0" + trailer
            return None
        if len(trailer) != end + 4:
            raise MalformedResponseError("more came than the answer")
        return self._complete(bytes(self._body))

    def _keep(self, part: bytes) -> None:
        if len(self._body) + len(part) > self._limit:
            raise AnswerTooLargeError(f"the answer is larger than {self._limit} bytes")
        self._body += part

    def _complete(self, body: bytes) -> WireResponse:
        assert self._head is not None
        answer = WireResponse(self._status, self._head, body)
        self._head = None
        if self._body or self._buffer:
            self._buffer = b""
            self._body = bytearray()
        return answer


def _value(head: bytes, line_start: bytes) -> bytes | None:
    start = head.find(line_start)
    if start < 0:
        return None
    end = head.find(b"\r\n", start + 2)
    return head[start + len(line_start) : end if end >= 0 else None].strip()
