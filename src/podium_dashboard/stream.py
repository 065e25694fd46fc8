"""Sends the ticks of a feed to one viewer, as server-sent events.

    event: tick      what changed (records.Tick)
    event: problem   the scheduler cannot be read; ticks go on when it can

Nothing queues up for a viewer that reads slowly: it gets the newest tick when it has read the one before, with `reset`
set where it missed some, and then fetches the snapshot.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

import msgspec
from aiohttp import web

from podium_dashboard.feed import Feed
from podium_dashboard.records import NoAnswer
from podium_dashboard.viewer import Viewer

STALL: Final = 60.0
"""Seconds that a viewer may leave a tick unread."""
_MISSED: Final = b"event: missed\ndata: {}\n\n"


async def send_ticks(
    feed: Feed, viewer: Viewer, request: web.BaseRequest, headers: Mapping[str, str]
) -> web.StreamResponse:
    """Send until the viewer leaves or stops reading."""
    await feed.ready()
    response = web.StreamResponse(headers=headers)
    await response.prepare(request)
    feed.viewers += 1
    seen = feed.number
    try:
        while True:
            moment = await feed.next_moment(seen)
            if moment is None:
                data = b"event: problem\ndata: " + msgspec.json.encode(NoAnswer(error=feed.problem)) + b"\n\n"
            else:
                missed = _MISSED if moment.number > seen + 1 else b""
                seen = moment.number
                data = missed + b"event: tick\ndata: " + moment.encoded(viewer) + b"\n\n"
            async with asyncio.timeout(STALL):
                await response.write(data)
    except (ConnectionError, TimeoutError):
        if request.transport is not None:
            request.transport.abort()
    finally:
        feed.viewers -= 1
    return response
