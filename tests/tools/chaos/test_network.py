"""The client and an HTTP server, byte by byte, without a socket between them."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest
from aiohttp import web

from podium.client import Access, ApiError, Client, Unreachable
from podium.client.access import Route
from tools.chaos.network import Connector, Network
from tools.kit.virtual_time import VirtualLoop, VirtualProcess, current_process, run_virtually

T = TypeVar("T")
Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


def access() -> Access:
    return Access("http://api:80", route=Route(compression=False, connector=Connector))


def served(handler: Handler, seed: int = 0) -> Network:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    loop.network = network = Network(random.Random(seed))
    network.listen("api", 80, web.Server(handler, access_log=None))
    return network


async def echo(request: web.BaseRequest) -> web.StreamResponse:
    return web.Response(body=f"{request.method} {request.path_qs} ".encode() + await request.read())


async def ticking(request: web.BaseRequest) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    for number in range(10):
        await response.write(b"%d\n" % number)
        await asyncio.sleep(1)
    return response


def now() -> float:
    return asyncio.get_running_loop().time()


@pytest.mark.parametrize("seed", range(10))
def test_requests_and_answers_arrive_whole_however_they_are_split(seed: int) -> None:
    async def main() -> None:
        served(echo, seed)
        async with Client(access()) as client:
            long = b"x" * 100_000
            assert await client.get("/api/v1/nodes", {"limit": "5"}) == b"GET /api/v1/nodes?limit=5 "
            answers = await asyncio.gather(*(client.post(f"/a/{number}", long) for number in range(20)))
            assert answers == [b"POST /a/%d " % number + long for number in range(20)]
        assert 0 < now() < 0.2

    run_virtually(main())


def test_a_stream_comes_as_it_is_written() -> None:
    async def main() -> None:
        served(ticking)
        async with Client(access()) as client, client.stream("/watch") as chunks:
            came = [(chunk, round(now())) async for chunk in chunks]
        assert came == [(b"%d\n" % number, number) for number in range(10)]

    run_virtually(main())


def test_nobody_listening_is_a_refusal_before_anything_was_sent() -> None:
    async def main() -> None:
        network = served(echo)
        network.down = True
        async with Client(access()) as client:
            for ask in (client.post("/a", b""), client.get("/a", timeout=5)):
                with pytest.raises(Unreachable, match="refuses connections") as refused:
                    await ask
                assert not refused.value.sent

    run_virtually(main())


def test_a_cut_link_is_told_to_both_sides_and_the_write_may_have_arrived() -> None:
    ended: list[str] = []

    async def slow(request: web.BaseRequest) -> web.StreamResponse:
        try:
            await asyncio.sleep(100)
        finally:
            ended.append(request.path)
        return web.Response()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        network = loop.network = Network(random.Random(0))
        network.listen("api", 80, web.Server(slow, access_log=None, handler_cancellation=True))
        async with Client(access()) as client:
            asking = asyncio.create_task(client.post("/a", b""))
            await asyncio.sleep(1)
            for link in network.links():
                link.cut()
            with pytest.raises(Unreachable) as lost:
                await asking
            assert lost.value.sent
            assert ended == ["/a"]
            assert network.links() == []

    run_virtually(main())


def test_a_link_cut_after_so_many_bytes_brings_just_those() -> None:
    async def main() -> None:
        network = served(ticking)
        network.connected = lambda link: setattr(link.server, "cut_after", 190)
        came = b""
        async with Client(access()) as client, client.stream("/watch") as chunks:
            with pytest.raises(Unreachable):
                async for chunk in chunks:
                    came += chunk
        assert came.startswith(b"0\n1\n")
        assert len(came) < 20

    run_virtually(main())


def test_a_silent_link_says_nothing_and_only_time_tells() -> None:
    async def main() -> None:
        network = served(ticking)
        async with Client(access()) as client, client.stream("/watch", idle=30) as chunks:
            with pytest.raises(Unreachable, match="did not answer in time"):
                async for _chunk in chunks:
                    for link in network.links():
                        link.silent = True
        assert now() == pytest.approx(30, abs=2)

    run_virtually(main())


def test_a_paused_process_hears_when_it_goes_on_and_a_killed_one_hangs_up() -> None:
    heard: list[tuple[bytes, int]] = []

    async def listen() -> None:
        async with Client(access()) as client, client.stream("/watch") as chunks:
            async for chunk in chunks:
                process = current_process()
                assert process is not None
                heard.append((chunk, round(now())))

    async def main() -> None:
        network = served(ticking)
        process = VirtualProcess("one")
        listening = process.within(listen())
        await asyncio.sleep(2.5)
        process.pause(4)
        await asyncio.sleep(5)
        assert [when for _, when in heard] == [0, 1, 2, 6, 6, 6, 6, 7]
        assert [link.process for link in network.links()] == [process]
        network.hang_up(process)
        await process.kill()
        assert listening.done()
        await asyncio.sleep(2)
        assert (len(heard), network.links(), process.tasks) == (8, [], [])

    run_virtually(main())


def test_who_is_killed_while_paused_is_gone_at_once() -> None:
    async def main() -> None:
        process = VirtualProcess("one")
        sleeping = process.within(asyncio.sleep(1))
        await asyncio.sleep(0)
        process.pause(100)
        await asyncio.sleep(2)
        assert not sleeping.done()
        await process.kill()
        assert sleeping.cancelled() or sleeping.done()
        assert now() == 2

    run_virtually(main())


def test_a_refusal_is_the_servers_own() -> None:
    async def refuse(_request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=429, body=b'{"message": "later"}')

    async def main() -> None:
        served(refuse)
        async with Client(access()) as client:
            with pytest.raises(ApiError, match="later"):
                await client.post("/a", b"")

    run_virtually(main())


def test_the_same_seed_takes_the_same_time() -> None:
    async def main() -> float:
        served(echo, 7)
        async with Client(access()) as client:
            await asyncio.gather(*(client.post(f"/a/{number}", b"x") for number in range(50)))
        return now()

    assert run_virtually(main()) == run_virtually(main())
