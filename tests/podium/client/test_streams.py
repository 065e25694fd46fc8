"""Watches: how they begin, end and break."""

from contextlib import AsyncExitStack

import pytest
from aiohttp import web

from podium.client import ApiError, TimedOut, Unreachable
from podium.client import client as client_module
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
