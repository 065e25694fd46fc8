"""Watches: how they begin, end and break."""

from contextlib import AsyncExitStack

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from podium.client import ApiError, TimedOut, Unreachable
from podium.client import client as client_module
from podium.client.reading import BrokenStream, LineSplitter
from tests.podium.client.asking import Asked, all_of, busy, new_client, ok, streamed
from tests.podium.client.conftest import Run
from tests.podium.client.servers import serving


def test_a_stream_ends_when_the_server_ends_it(run: Run) -> None:
    async def main() -> None:
        async with serving(streamed(b"one\n", b"two\n", then="end")) as url, new_client(url) as client:
            assert await all_of(client) == b"one\ntwo\n"

    run(main())


def test_a_stream_that_is_cut_is_an_error(run: Run) -> None:
    async def main() -> None:
        async with serving(streamed(b"one\n", then="cut")) as url, new_client(url) as client:
            with pytest.raises(Unreachable, match="before the whole answer came"):
                await all_of(client)

    run(main())


def test_a_stream_that_falls_silent_times_out(run: Run) -> None:
    async def main() -> None:
        async with serving(streamed(b"one\n", then="hang")) as url, new_client(url) as client:
            with pytest.raises(TimedOut):
                await all_of(client, idle=0.05)

    run(main())


def test_a_refused_stream_is_an_api_error_and_a_busy_server_is_waited_for(run: Run) -> None:
    seen = Asked(busy(), busy(410, None))

    async def main() -> None:
        async with serving(seen.answer) as url, new_client(url) as client:
            with pytest.raises(ApiError) as refused:
                await all_of(client)
        assert refused.value.gone
        assert len(seen.requests) == 2

    run(main())


def test_watches_take_no_connection_from_requests(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "CONNECTIONS", 1)
    hang = streamed(b"one\n", then="hang")

    async def handler(request: web.Request) -> web.StreamResponse:
        return await hang(request) if request.path == "/watch" else ok()

    async def main() -> None:
        async with serving(handler) as url, new_client(url) as client, AsyncExitStack() as stack:
            for _ in range(5):
                chunks = await stack.enter_async_context(client.stream("/watch"))
                assert await anext(chunks) == b"one\n"
            await client.get("/a")
            await client.post("/a", {})

    run(main())


@given(st.lists(st.binary(max_size=20)), st.data())
def test_lines_are_the_same_however_the_bytes_are_cut(texts: list[bytes], data: st.DataObject) -> None:
    stream = b"\n".join(texts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)))))
    lines = LineSplitter()
    found: list[bytes] = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += lines.feed(stream[start:end])
    whole = stream.split(b"\n")[:-1]  # what follows the last line end is not a line yet
    assert found == [line for line in whole if line]


def test_a_line_may_be_as_long_as_the_bound_and_no_longer() -> None:
    lines = LineSplitter(longest=10)
    assert lines.feed(b"0123456789\n01234") == [b"0123456789"]
    assert lines.feed(b"56789\n") == [b"0123456789"]
    with pytest.raises(BrokenStream, match="the server sent a line of more than 10 bytes"):
        lines.feed(b"0123456789+\n")


def test_a_line_that_never_ends_is_not_collected_without_end() -> None:
    lines = LineSplitter(longest=10)
    assert lines.feed(b"012345") == []
    with pytest.raises(BrokenStream):
        lines.feed(b"012345")
