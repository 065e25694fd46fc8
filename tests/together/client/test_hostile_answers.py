"""An API server that sends more than memory holds: packed, in many values, in pages without end."""

import asyncio
import gzip
import random
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

from podium.client import ClientError, Unreachable, WatchedOutcomes, listing, session
from podium.client import client as client_module
from podium.client.listing import list_all
from podium.client.reading import BrokenStream, Reader
from podium.client.session import SLICE
from podium.framework.clock import SystemClock
from podium.framework.pod_outcomes import ConfigMapName
from podium.run.snapshot import last_event
from podium_lab.reward import RewardBiasArgs, Rewards
from tests.podium.client.asking import new_client
from tests.podium.client.conftest import Run
from tests.podium.client.misbehaving import NODES, node
from tests.podium.client.servers import Handler, serving
from tools.kit.builders import make_pod

MIB = 1 << 20


def packed(content: bytes, encoding: str, status: int = 200) -> Handler:
    pack: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "deflate": zlib.compress, "identity": bytes}
    body = pack[encoding](content)

    async def handler(_: web.Request) -> web.Response:
        return web.Response(status=status, body=body, headers={"Content-Encoding": encoding})

    return handler


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "identity"])
@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize(
    ("content", "sentence"),
    [(bytes(2 * MIB), "sent too much: the answer is larger than"), (b"[1,1,1" + b",1" * 9000, "more than 9000 values")],
)
def test_what_is_unpacked_is_bounded_in_bytes_and_values_and_not_asked_for_again(
    run: Run, monkeypatch: pytest.MonkeyPatch, content: bytes, sentence: str, status: int, encoding: str
) -> None:
    monkeypatch.setattr(client_module, "MAX_LIST", MIB)
    monkeypatch.setattr(session, "MOST_VALUES", 9000)
    answer, requests = packed(content, encoding, status), []

    async def handler(request: web.Request) -> web.StreamResponse:
        requests.append(request.path)
        return await answer(request)

    async def main() -> None:
        async with serving(handler) as url, new_client(url) as client:
            with pytest.raises(Unreachable, match=sentence):
                await client.get("/api/v1/pods")

    run(main())
    assert len(requests) == 1


def test_others_get_their_turn_while_a_list_or_a_watch_unpacks(run: Run) -> None:
    size = 64 * MIB

    async def turns_during(work: Callable[[], Any]) -> int:
        turns, task = 0, asyncio.ensure_future(work())
        while not task.done():
            turns += 1
            await asyncio.sleep(0)
        await task
        return turns

    async def main() -> None:
        async with serving(packed(bytes(size), "gzip")) as url, new_client(url) as client:

            async def watch() -> None:
                async with client.stream("/api/v1/pods") as chunks:
                    assert sum([len(chunk) async for chunk in chunks]) == size

            async def read() -> None:
                assert len(await client.get("/api/v1/pods")) == size

            for work in (read, watch):
                assert await turns_during(work) > size // SLICE // 2

    run(main())


def test_large_answers_are_read_one_after_the_other(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "LARGE", MIB)
    parts = [asyncio.Event() for _ in range(3)]

    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(bytes(MIB))
        await parts[int(request.path[-1])].wait()
        return response

    async def main() -> None:
        async with serving(handler) as url, new_client(url) as client:
            first = asyncio.create_task(client.get("/0"))
            await until(client._large_answers.locked)
            parts[1].set()
            second = asyncio.create_task(client.get("/1", timeout=0.2))  # all of it is there, but another reads
            with pytest.raises(Unreachable, match="in time"):
                await second
            parts[0].set()
            parts[2].set()
            assert len(await first) == len(await client.get("/2")) == MIB

    run(main())


async def until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0.001)


def page(*items: Any, more: str = "more") -> web.Response:
    return web.json_response({"metadata": {"resourceVersion": "1", "continue": more}, "items": items})


@pytest.mark.parametrize(
    ("bound", "items"),
    [("MOST_PAGES", []), ("MOST_OBJECTS", [1] * 20), ("MOST_BYTES", [node("n", 1, padding="x" * 100)])],
)
def test_a_list_whose_pages_do_not_end_is_given_up(
    run: Run, monkeypatch: pytest.MonkeyPatch, bound: str, items: list[Any]
) -> None:
    monkeypatch.setattr(listing, bound, 50)

    async def handler(_: web.Request) -> web.Response:
        return page(*items)

    async def main() -> None:
        async with serving(handler) as url, new_client(url) as client:
            with pytest.raises(BrokenStream, match="the server's list does not end"):
                await list_all(client, NODES, Reader(NODES))

    run(main())


def test_an_object_of_a_list_is_bounded_like_one_of_a_watch(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("podium.client.reading.LONGEST_LINE", 1000)

    async def handler(_: web.Request) -> web.Response:
        return page(node("a", 1), node("b", 1, padding="x" * 1000), more="")

    async def main() -> None:
        async with serving(handler) as url, new_client(url) as client:
            (good, bad), _version = await list_all(client, NODES, Reader(NODES))
            assert not good.problem
            assert (bad.identity.key, bad.object, bad.problem) == ("b", None, "it is larger than 1000 bytes")

    run(main())


@pytest.mark.parametrize("body", [b"", b"null", b"[1]", b'{"items": 3, "metadata": 4}', b"\xff{}", b'{"a":' * 2000])
def test_something_else_than_what_was_asked_for_is_said_in_a_sentence(run: Run, body: bytes) -> None:
    said: list[str] = []

    async def handler(_: web.Request) -> web.Response:
        return web.Response(body=body)

    async def main() -> None:
        async with serving(handler) as url, new_client(url) as client:
            with pytest.raises(ClientError, match="events cannot be read"):
                await last_event(client, make_pod("a", metadata={"uid": "u"}))
            pod_outcomes = WatchedOutcomes(
                client, clock=SystemClock(), rng=random.Random(1), report=said.append, may_write=lambda: True
            )
            pod_outcomes.follow(
                ConfigMapName("default", "lessons"), lambda: Rewards(RewardBiasArgs()), lambda _pod, _error: None
            )
            task = asyncio.create_task(pod_outcomes.run())
            await until(lambda: bool(said))
            task.cancel()

    run(main())
    assert "cannot be read: the API server's answer is no ConfigMap" in said[0]


@pytest.mark.parametrize(
    ("headers", "says"),
    [
        ({"Content-Encoding": "br"}, "sent something else than an answer: "),
        ({"X-Long": "a" * 20_000}, "sent something "),
    ],
)
def test_an_answer_that_is_no_http_that_can_be_read_is_said_in_a_sentence(
    run: Run, headers: dict[str, str], says: str
) -> None:
    async def handler(_: web.Request) -> web.Response:
        return web.Response(body=b"abc", headers=headers)

    async def main() -> None:
        async with serving(handler) as url, new_client(url) as client:
            with pytest.raises(Unreachable, match=says) as refused:
                await client.get("/api/v1/nodes")
            assert len(str(refused.value)) < 300

    run(main())
