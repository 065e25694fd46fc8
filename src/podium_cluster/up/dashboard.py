"""Serves the dashboard of `podium up`, on the port of the API."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final, TypeVar

from podium.config.registry import Registry
from podium.run.dashboard import (
    PATH,
    DashboardSource,
    NoSchedulerError,
    SchedulerView,
    open_dashboard,
    serves,
    view_of,
)
from podium.run.process import SchedulerProcess
from podium_cluster.apiserver.http.server import ApiServer, Site
from podium_cluster.up.scheduler_thread import SchedulerThread

PATIENCE: Final = 5.0
"""Seconds that a request waits for the scheduler."""
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
