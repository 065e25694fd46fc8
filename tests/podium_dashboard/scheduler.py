"""A scheduler in memory for the dashboard to look at, and a browser's way to ask it."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import aiohttp
from msgspec.structs import replace

from podium.config.load import default_config
from podium.engine.explain import Unwritten
from podium.engine.scheduler import Scheduler
from podium.framework import ManualClock, Nomination
from podium.framework.handle import Driver
from podium.kube import Pod
from podium.plugins import load_registry
from podium.run.dashboard import PATH, DashboardSource, SchedulerView, serve_dashboard
from podium.run.pod_history import PodHistory
from podium_dashboard.dump import look_at

REGISTRY = load_registry()
CONFIG = default_config(REGISTRY)


class SmallScheduler:
    """An engine that binds at once, with the history that a dashboard reads."""

    def __init__(self) -> None:
        self.clock = ManualClock(1_800_000_000.0)
        self.history = PodHistory(self.clock)
        driver = Driver(clock=self.clock, writer=Unwritten(), rng=random.Random(0))
        self.engine = Scheduler(CONFIG, REGISTRY, driver, self)
        self.engine.queue.follow(self.history.moved)

    def scheduled(self, pod: Pod, node_name: str) -> None:
        self.history.scheduled(pod, node_name)

    def failed(self, pod: Pod, reason: str, message: str, nomination: Nomination | None) -> None:
        self.history.attempt_failed(pod, reason, message, "")

    def add(self, *items: Any) -> None:
        """Take in objects; pods that have no uid go by their name."""
        for item in items:
            named = isinstance(item, Pod) and not item.uid
            self.engine.intake.set(replace(item, metadata=replace(item.metadata, uid=item.key)) if named else item)

    def schedule(self) -> None:
        while self.engine.schedule_one() is not None:
            pass

    def view(self) -> SchedulerView:
        return SchedulerView(self.engine, CONFIG, REGISTRY, self.clock.now(), history=self.history)

    def source(self, kind: str = "podium run") -> DashboardSource:
        async def look(take: Any) -> Any:
            return take(self.view())

        return DashboardSource(kind, look)


class Browser:
    """Asks a dashboard as its page does."""

    def __init__(self, session: aiohttp.ClientSession, port: int) -> None:
        self.session = session
        self.base = f"http://127.0.0.1:{port}{PATH}/"

    async def get(self, name: str, **headers: str) -> Any:
        async with self.session.get(f"{self.base}api/v1/{name}", headers=headers) as response:
            return await response.json()

    async def status(self, path: str, headers: Mapping[str, str] | None = None, method: str = "GET") -> int:
        asked = self.session.request(method, f"{self.base}{path}", headers=headers or {}, allow_redirects=False)
        async with asked as response:
            return response.status


@asynccontextmanager
async def browsing(source: DashboardSource) -> AsyncIterator[Browser]:
    async with AsyncExitStack() as stack:
        port = await serve_dashboard(source, 0, stack)
        session = await stack.enter_async_context(aiohttp.ClientSession())
        yield Browser(session, port)


def of_view(view: SchedulerView) -> DashboardSource:
    return DashboardSource("dump", look_at(view), ("--from", "dump.yaml"))
