"""Serves the scheduler's pages and the dashboard on the port of the API, which is the one address that users of `podium
up` know.

They are those that `podium run` serves on its own port, and one more: this process explains pods to a `podium explain`
that lacks the scheduler's plugins. The scheduler has a loop of its own: where a plugin holds it up, the answer is a
refusal that says so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from podium.config.registry import Registry
from podium.run.dashboard import PATH, DashboardSource, NoSchedulerError, SchedulerView, open_dashboard, serves, view_of
from podium.run.process import SchedulerProcess
from podium.run.scheduler_pages import configuration_page, queue_page, read_question
from podium_cluster.apiserver.errors import StatusError
from podium_cluster.apiserver.http.handler import failure
from podium_cluster.apiserver.http.server import ApiServer, Page, Site
from podium_cluster.apiserver.messages import ApiResponse, Query
from podium_cluster.up.scheduler_thread import SchedulerThread

PATIENCE: Final = 5.0
"""Seconds that a request waits for the scheduler."""


ExplainPods = Callable[[str], bytes]
"""Explains a pod ("namespace/name"), or all that wait (""); called in a thread. Raises ValueError with a sentence."""


def pages_of(scheduler: SchedulerThread, explain: ExplainPods | None, patience: float = PATIENCE) -> dict[str, Page]:
    """The pages by path; `/explainz` is there where something explains."""
    one_at_a_time = asyncio.Lock()

    async def answer(take: Callable[[SchedulerProcess], dict[str, Any] | None]) -> ApiResponse:
        pending = asyncio.wrap_future(scheduler.ask_process(take, None))
        try:
            found = await asyncio.wait_for(pending, patience)
        except TimeoutError:
            return _unavailable("the scheduler does not answer: a plugin holds it up")
        return _unavailable("the scheduler starts") if found is None else ApiResponse(200, msgspec.json.encode(found))

    async def queue(query: Query) -> ApiResponse:
        return await answer(lambda process: queue_page(process, read_question(query)))

    async def configuration(_query: Query) -> ApiResponse:
        return await answer(lambda process: configuration_page(process, explains=explain is not None))

    async def explanation(query: Query) -> ApiResponse:
        assert explain is not None
        async with one_at_a_time:
            try:
                return ApiResponse(200, await asyncio.to_thread(explain, query.get("pod", "")))
            except ValueError as error:
                return failure(StatusError(400, "BadRequest", str(error), {}))

    pages: dict[str, Page] = {"/configz": configuration, "/queuez": queue}
    return pages if explain is None else {**pages, "/explainz": explanation}


def _unavailable(message: str) -> ApiResponse:
    return failure(StatusError(503, "ServiceUnavailable", message, {}))


T = TypeVar("T")


async def serve_dashboard_of(
    scheduler: SchedulerThread,
    registry: Callable[[], Registry],
    server: ApiServer,
    kubeconfig: Path,
    stack: AsyncExitStack,
) -> str:
    """Serve it until `stack` closes; its address, or "" where no package brings a dashboard."""

    async def look(take: Callable[[SchedulerView], T]) -> T:
        def looked(process: SchedulerProcess) -> tuple[T] | None:
            return (take(view_of(process, registry())),)

        try:
            found = await asyncio.wait_for(asyncio.wrap_future(scheduler.ask_process(looked, None)), PATIENCE)
        except TimeoutError:
            raise NoSchedulerError("the scheduler does not answer: a plugin holds it up") from None
        if found is None:
            raise NoSchedulerError("the scheduler starts")
        return found[0]

    dashboard = open_dashboard(DashboardSource("podium up", look, ("--kubeconfig", str(kubeconfig))))
    if dashboard is None:
        return ""
    await dashboard.start()
    stack.push_async_callback(dashboard.stop)
    server.site = Site(serves, dashboard.answer)
    return f"{server.url}{PATH}/"
