"""Many viewers at once see the same, and one that does not read holds nobody up."""

from __future__ import annotations

import asyncio
import socket

import aiohttp
import pytest

from podium.run.dashboard import PATH
from podium.testing import node, pod
from podium_dashboard import feed
from podium_dashboard.access import Viewer
from podium_dashboard.feed import Moment
from tests.podium_dashboard.scheduler import SmallScheduler, browsing

VIEWERS = 50
LARGE = b'"' + b"x" * 400_000 + b'"'
"""A tick that fills the buffers of a connection after a few of its kind."""
KEPT_AT_MOST = 24 << 20
"""What buffers of the system and one tick may hold for a viewer that does not read."""
TICKS = 100


async def _until(response: aiohttp.ClientResponse, wanted: bytes) -> bytes:
    async for line in response.content:
        if wanted in line:
            return line
    raise AssertionError("the stream ended")


def test_fifty_viewers_are_told_of_the_same_placement() -> None:
    async def watch() -> set[bytes]:
        scheduler = SmallScheduler()
        scheduler.add(node("a", cpu=4))
        async with browsing(scheduler.source()) as browser:
            connector = aiohttp.TCPConnector(limit=0)
            async with aiohttp.ClientSession(connector=connector) as session:
                opened = await asyncio.gather(*(session.get(f"{browser.base}api/v1/stream") for _ in range(VIEWERS)))
                scheduler.add(pod("web", cpu=1))
                scheduler.schedule()
                said = await asyncio.gather(*(_until(each, b"default/web") for each in opened))
                for each in opened:
                    each.close()
                return set(said)

    assert len(asyncio.run(watch())) == 1


def test_a_viewer_that_does_not_read_holds_nobody_up_and_skips_what_it_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = 0

    def large(_self: Moment, _viewer: Viewer) -> bytes:
        nonlocal encoded
        encoded += 1
        return LARGE

    monkeypatch.setattr(Moment, "encoded", large)
    monkeypatch.setattr(feed, "PACE", 0.002)

    async def watch() -> tuple[int, bool]:
        scheduler = SmallScheduler()
        scheduler.add(node("a", cpu=4))
        async with browsing(scheduler.source()) as browser:
            port = int(browser.base.split(":")[2].split("/")[0])
            slow = socket.create_connection(("127.0.0.1", port))
            slow.setblocking(False)
            host = f"Host: 127.0.0.1:{port}\r\n\r\n"
            slow.sendall(f"GET {PATH}/api/v1/stream HTTP/1.1\r\n{host}".encode())
            async with browser.session.get(f"{browser.base}api/v1/stream") as quick:
                for _ in range(TICKS):
                    await _until(quick, b"event: tick")
            loop, read, missed = asyncio.get_running_loop(), 0, False
            with slow:
                while not missed and read < 2 * KEPT_AT_MOST:
                    piece = await loop.sock_recv(slow, 1 << 20)
                    assert piece
                    read, missed = read + len(piece), b"event: missed" in piece
            return read, missed

    read, missed = asyncio.run(watch())
    assert missed
    assert read < KEPT_AT_MOST < TICKS * len(LARGE)
