"""Answers in HTTP/1.1, whole, in pieces and wrong."""

import asyncio
import tracemalloc
from collections.abc import Sequence
from itertools import pairwise, repeat

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.client.wire import MalformedResponseError, WireConnection, WireResponse
from tools.fuzz.limits import cpu_limit


class MemoryTransport(asyncio.Transport):
    """A transport without a network: remembers what was written and whether it was cut."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.aborted = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def abort(self) -> None:
        self.aborted = True


def exchange(pieces: Sequence[bytes], *, closes: bool = False, limit: int = 10_000) -> tuple[WireResponse, bool]:
    """The answer read from `pieces`, and whether the connection may be used again."""

    async def main() -> tuple[WireResponse, bool]:
        loop = asyncio.get_running_loop()
        connection = WireConnection(loop, limit)
        transport = MemoryTransport()
        connection.connection_made(transport)
        asking = connection.send(b"request", loop.time() + 10)
        assert transport.written == b"request"
        for piece in pieces:
            connection.data_received(piece)
        if closes:
            connection.connection_lost(None)
        async with asyncio.timeout(5):
            return await asking, connection.reusable

    return asyncio.run(main())


def in_pieces(data: bytes, cuts: Sequence[int]) -> list[bytes]:
    places = sorted({cut % (len(data) + 1) for cut in cuts} | {0, len(data)})
    return [data[start:end] for start, end in pairwise(places) if end > start]


WITH_LENGTH = b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\nhello world"
CHUNKED_HEAD = b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n"
CHUNKED = CHUNKED_HEAD + b"5\r\nhello\r\n6;a=b\r\n world\r\n0\r\nTrailer: x\r\n\r\n"
AFTER_INTERIM = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + WITH_LENGTH


@pytest.mark.parametrize("answer", [WITH_LENGTH, CHUNKED, AFTER_INTERIM], ids=["length", "chunked", "interim"])
@given(cuts=st.lists(st.integers(0, 200), max_size=12))
def test_an_answer_reads_the_same_however_it_is_cut(answer: bytes, cuts: list[int]) -> None:
    read, reusable = exchange(in_pieces(answer, cuts))
    assert (read.status, read.body, reusable) == (201, b"hello world", True)


@given(chunks=st.lists(st.binary(min_size=1, max_size=50), max_size=6), cuts=st.lists(st.integers(0, 500), max_size=8))
def test_chunks_are_joined(chunks: list[bytes], cuts: list[int]) -> None:
    body = b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks)
    answer = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + body + b"0\r\n\r\n"
    assert exchange(in_pieces(answer, cuts))[0].body == b"".join(chunks)


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", b"ok"),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", b"ok"),
    ],
)
def test_a_connection_the_server_will_close_is_not_used_again(answer: bytes, body: bytes) -> None:
    read, reusable = exchange([answer])
    assert (read.body, reusable) == (body, False)


def test_without_a_length_the_body_ends_with_the_connection() -> None:
    read, reusable = exchange([b"HTTP/1.1 200 OK\r\n\r\nas it", b" comes"], closes=True)
    assert (read.body, reusable) == (b"as it comes", False)


def test_no_content_has_no_body() -> None:
    assert exchange([b"HTTP/1.1 204 No Content\r\n\r\n"])[0].body == b""


def test_headers_are_found_whatever_their_case() -> None:
    read, _ = exchange([b"HTTP/1.1 429 Too Many\r\nRETRY-After:  7 \r\nContent-Length: 0\r\n\r\n"])
    assert read.header(b"retry-after") == b"7"
    assert read.header(b"retry") is None


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (b"SSH-2.0-OpenSSH\r\n\r\n", "not HTTP"),
        (b"HTTP/1.1 abc\r\n\r\n", "invalid literal"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n", "invalid literal"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\ntoo long", "more came"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "invalid literal"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n", "larger"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nmore", "more came"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1" * 2000, "does not end"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + b"x" * 70_000, "does not end"),
        (b"HTTP/1.1 200 OK\r\n" + b"x" * 70_000, "do not end"),
    ],
)
def test_what_is_not_an_answer_is_refused(answer: bytes, says: str) -> None:
    with pytest.raises(MalformedResponseError, match=says):
        exchange([answer])


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 101\r\n\r\n" + b"x" * 101,
        b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 101,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n65\r\n" + b"x" * 101 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n33\r\n" + b"x" * 51 + b"\r\n33\r\n",
    ],
)
def test_an_answer_past_the_limit_is_refused(answer: bytes) -> None:
    with pytest.raises(MalformedResponseError, match="larger than 100 bytes"):
        exchange([answer], limit=100)


@pytest.mark.parametrize(
    "part",
    [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", CHUNKED[:-2]],
    ids=["nothing", "half a head", "half a body", "no last chunk"],
)
def test_an_answer_that_is_cut_off_is_an_error(part: bytes) -> None:
    with pytest.raises(ConnectionResetError, match="before the whole answer came"):
        exchange([part] if part else [], closes=True)


def test_bytes_nobody_asked_for_close_the_connection() -> None:
    async def main() -> None:
        connection = WireConnection(asyncio.get_running_loop(), 100)
        transport = MemoryTransport()
        connection.connection_made(transport)
        connection.data_received(WITH_LENGTH)
        assert transport.aborted
        assert not connection.reusable

    asyncio.run(main())


def test_a_large_chunk_in_many_small_pieces_is_read_in_linear_time() -> None:
    size = 16 << 20
    pieces = [CHUNKED_HEAD + b"%x\r\n" % size, b"x" * (size - 6000), *repeat(b"x", 6000), b"\r\n0\r\n\r\n"]
    with cpu_limit():
        answer, _ = exchange(pieces, limit=size)
    assert len(answer.body) == size


def test_an_answer_in_many_small_chunks_takes_no_more_memory_than_it_has_bytes() -> None:
    size = 1 << 20
    pieces = [CHUNKED_HEAD, *repeat(b"2\r\nxy\r\n", size // 2), b"0\r\n\r\n"]
    tracemalloc.start()
    try:
        answer, _ = exchange(pieces, limit=size)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(answer.body) == size
    assert most < 5 * size
