"""HTTP/1.1 as an API server speaks it: one request at a time on a connection that is kept.

Writes go this way rather than through aiohttp's session, which does for every request what a browser would need
(cookies, redirects, content types, a stream per body) at about four times the CPU. Here a request is one write of
bytes that were joined once, and an answer is read into bytes: as long as Content-Length says, or in chunks, or until
the server closes. What the caller gets besides is certainty: before `exchange` nothing was sent, so nothing can have
happened on the server.
"""

import asyncio
from typing import NamedTuple, cast

END_OF_HEAD = b"\r\n\r\n"
MAX_HEAD = 64 << 10
MAX_CHUNK_LINE = 1 << 10


class MalformedError(Exception):
    """What came is not HTTP, or longer than allowed; says which."""


class Answer(NamedTuple):
    status: int
    head: bytes
    """The status line and header lines, lower-cased."""
    body: bytes

    def header(self, name: bytes) -> bytes | None:
        """The value of a header, its name in lower case."""
        start = self.head.find(b"\r\n" + name + b":")
        if start < 0:
            return None
        start += len(name) + 3
        end = self.head.find(b"\r\n", start)
        return self.head[start : end if end >= 0 else None].strip()


class Connection(asyncio.Protocol):
    """A connection, idle or in one exchange. `reusable` is False once it must not be asked again."""

    def __init__(self, loop: asyncio.AbstractEventLoop, limit: int) -> None:
        self._loop = loop
        self._limit = limit
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[Answer] | None = None
        self.reusable = False
        self.idle_since = 0.0
        self.lost: asyncio.Future[None] = loop.create_future()
        self._reset()

    def _reset(self) -> None:
        self._buffer = b""
        self._head: bytes | None = None
        self._status = 0
        self._missing = 0
        self._chunked = False
        self._until_close = False
        self._chunks: list[bytes] = []
        self._size = 0

    async def exchange(self, request: bytes, deadline: float) -> Answer:
        """Sends and waits for the whole answer. TimeoutError, OSError or MalformedError where none came; the
        connection is closed then."""
        assert self._transport is not None
        waiter: asyncio.Future[Answer] = self._loop.create_future()
        self._waiter = waiter
        self._transport.write(request)
        timer = self._loop.call_at(deadline, self._expire)
        try:
            return await waiter
        finally:
            timer.cancel()
            self._waiter = None
            if not waiter.done() or waiter.cancelled():  # the caller was cancelled: the answer may still be coming
                self.abort()

    def abort(self) -> None:
        self.reusable = False
        if self._transport is not None:
            self._transport.abort()

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
        except (MalformedError, ValueError) as error:
            waiter.set_exception(error if isinstance(error, MalformedError) else MalformedError(str(error)))
            self.abort()
            return
        if answer is not None:
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
        if self._until_close and exc is None:
            waiter.set_result(self._complete())
        elif isinstance(exc, OSError):
            waiter.set_exception(exc)
        else:
            waiter.set_exception(ConnectionResetError("the connection was closed before the whole answer came"))

    def _expire(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(TimeoutError())
        self.abort()

    def _feed(self, data: bytes) -> Answer | None:
        if self._head is None:
            data = self._buffer + data if self._buffer else data
            rest = self._read_head(data)
            if rest is None:
                return None
            data = rest
        if self._chunked:
            return self._read_chunks(data)
        self._size += len(data)
        if self._size > self._limit:
            raise MalformedError(f"the answer is larger than {self._limit} bytes")
        self._chunks.append(data)
        if self._until_close or self._size < self._missing:
            return None
        if self._size > self._missing:
            raise MalformedError("more came than Content-Length said")
        return self._complete()

    def _read_head(self, data: bytes) -> bytes | None:
        """What follows the head, or None if it is not whole yet. Interim answers (1xx) are passed over."""
        while True:
            end = data.find(END_OF_HEAD)
            if end < 0:
                if len(data) > MAX_HEAD:
                    raise MalformedError("the answer's headers do not end")
                self._buffer = data
                return None
            head = data[:end].lower()
            if not head.startswith(b"http/1."):
                raise MalformedError("the answer is not HTTP/1.1")
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
        """How the body's end is found."""
        answer = Answer(status, head, b"")
        if head.startswith(b"http/1.0") or b"close" in (answer.header(b"connection") or b""):
            self.reusable = False
        if status in (204, 304):
            return
        length = answer.header(b"content-length")
        if answer.header(b"transfer-encoding") is not None:
            self._chunked = True
        elif length is not None:
            self._missing = int(length)
        else:
            self._until_close = True
            self.reusable = False

    def _read_chunks(self, data: bytes) -> Answer | None:
        buffer = self._buffer + data if self._buffer else data
        position = 0
        while True:
            line_end = buffer.find(b"\r\n", position)
            if line_end < 0:
                if len(buffer) - position > MAX_CHUNK_LINE:
                    raise MalformedError("a chunk's size does not end")
                break
            size = int(buffer[position:line_end].partition(b";")[0], 16)
            if size == 0:
                return self._end_of_chunks(buffer[line_end:])
            if size < 0 or self._size + size > self._limit:
                raise MalformedError(f"the answer is larger than {self._limit} bytes")
            start = line_end + 2
            if len(buffer) < start + size + 2:
                break
            self._chunks.append(buffer[start : start + size])
            self._size += size
            position = start + size + 2
        self._buffer = buffer[position:]
        return None

    def _end_of_chunks(self, trailer: bytes) -> Answer | None:
        end = trailer.find(END_OF_HEAD)
        if end < 0:
            if len(trailer) > MAX_HEAD:
                raise MalformedError("the answer's trailer does not end")
            self._buffer = b"0" + trailer
            return None
        if len(trailer) != end + 4:
            raise MalformedError("more came than the answer")
        return self._complete()

    def _complete(self) -> Answer:
        assert self._head is not None
        chunks = self._chunks
        answer = Answer(self._status, self._head, bytes(chunks[0]) if len(chunks) == 1 else b"".join(chunks))
        self._reset()
        return answer
