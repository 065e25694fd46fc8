"""Serves the scheduler's pages on the port of the API, which is the one address that users of `podium up` know.

They are those that `podium run` serves on its own port. The scheduler has a loop of its own: where a plugin holds it
up, the answer is a refusal that says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

import msgspec

from podium.apiserver.errors import StatusError
from podium.apiserver.http.handler import failure
from podium.apiserver.http.server import Page
from podium.apiserver.messages import ApiResponse, Query
from podium.live.process import SchedulerProcess
from podium.live.scheduler_pages import configuration_page, queue_page, read_question
from podium.up.scheduler_thread import SchedulerThread

PATIENCE: Final = 5.0
"""Seconds that a request waits for the scheduler."""


def pages_of(scheduler: SchedulerThread, patience: float = PATIENCE) -> dict[str, Page]:
    """The pages by path."""

    async def answer(take: Callable[[SchedulerProcess], dict[str, Any] | None]) -> ApiResponse:
        asked = asyncio.wrap_future(scheduler.ask_process(take, None))
        try:
            found = await asyncio.wait_for(asked, patience)
        except TimeoutError:
            return _unavailable("the scheduler does not answer: a plugin holds it up")
        return _unavailable("the scheduler starts") if found is None else ApiResponse(200, msgspec.json.encode(found))

    async def queue(query: Query) -> ApiResponse:
        return await answer(lambda process: queue_page(process, read_question(query)))

    async def configuration(_query: Query) -> ApiResponse:
        return await answer(configuration_page)

    return {"/configz": configuration, "/queuez": queue}


def _unavailable(message: str) -> ApiResponse:
    return failure(StatusError(503, "ServiceUnavailable", message, {}))
