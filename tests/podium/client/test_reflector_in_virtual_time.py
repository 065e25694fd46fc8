"""Hours of bad weather in no time: the reflector asks no other clock than the loop's."""

import asyncio
import itertools
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import cast

import msgspec

from podium.client import Client, Reflector, TimedOut, Unreachable
from tests.podium.client.misbehaving import NODES, bookmark, node
from tools.kit.virtual_time import run_virtually


class DistantServer:
    """Stands where a client does; it is away until `back`, and sends a bookmark a minute from then on."""

    def __init__(self, back: float) -> None:
        self._back = back
        self.asked: list[float] = []

    async def get(self, path: str, params: Mapping[str, str], *, timeout: float) -> bytes:
        self._ask()
        return msgspec.json.encode({"metadata": {"resourceVersion": "1"}, "items": [node("a", 1)]})

    @asynccontextmanager
    async def stream(self, path: str, params: Mapping[str, str], *, idle: float) -> AsyncIterator[AsyncIterator[bytes]]:
        self._ask()
        yield self._bookmarks(int(params["resourceVersion"]), idle)

    async def _bookmarks(self, version: int, idle: float) -> AsyncIterator[bytes]:
        for _ in range(3):
            await asyncio.sleep(60)
            version += 1
            yield bookmark(version)
        await asyncio.sleep(idle)
        raise TimedOut("silence", sent=True)

    def _ask(self) -> None:
        now = asyncio.get_running_loop().time()
        self.asked.append(now)
        if now < self._back:
            raise Unreachable("nobody is there", sent=False)


def test_a_server_that_is_away_for_an_hour_is_asked_less_and_less_often_and_reported_twice_a_minute_at_most() -> None:
    reports: list[tuple[float, str]] = []
    sets: list[str] = []
    server = DistantServer(back=3600.0)

    async def main() -> None:
        reflector = Reflector(
            cast(Client, server),
            NODES,
            on_set=lambda obj: sets.append(obj.name),
            on_delete=lambda obj: sets.append(f"no {obj.name}"),
            report=lambda sentence: reports.append((asyncio.get_running_loop().time(), sentence)),
            rng=random.Random(3),
        )
        task = asyncio.create_task(reflector.run())
        await reflector.synced.wait()
        await asyncio.sleep(5)
        assert reflector.problem is None
        await asyncio.sleep(3600)
        task.cancel()

    run_virtually(main())

    away = [asked for asked in server.asked if asked < 3600]
    waits = [later - earlier for earlier, later in itertools.pairwise(away)]
    assert all(0.8 * 2**number <= wait < 1.6 * 2**number for number, wait in enumerate(waits[:5]))
    assert all(30 <= wait < 60 for wait in waits[6:])
    troubles = [when for when, sentence in reports if sentence == "nodes cannot be listed: nobody is there"]
    assert troubles[0] == 0.0
    assert all(later - earlier >= 30 for earlier, later in itertools.pairwise(troubles))
    assert [sentence for _, sentence in reports][len(troubles) :] == ["nodes can be listed and watched again"]
    assert sets == ["a"]
    assert len(server.asked) - len(away) >= 3600 // (180 + 150)  # every silence ended in another watch
