"""`podium up`: the API, the controllers, the nodes, the scheduler and a workload, in one process on one event loop.

The scheduler is the very process that `podium run` starts, and it reaches the API over HTTP on the loopback, as any
scheduler would; controllers and nodes work on the API directly. The order is that of a cluster coming up: first the
API, then nodes and controllers, then the scheduler, then the workload. What is told to stop stops in the reverse order.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Callable, Coroutine, Iterable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple

from podium.apiserver.agents import Agents
from podium.apiserver.api import Api
from podium.apiserver.controllers import Controllers
from podium.apiserver.database import Database, DatabaseError
from podium.apiserver.errors import StatusError
from podium.apiserver.kinds import NODE, POD
from podium.apiserver.serving import PortInUseError, Server
from podium.client import Access
from podium.config.registry import Registry
from podium.config.resolved import SchedulerConfig
from podium.framework.clock import SystemClock
from podium.live.endpoints.options import ServingOptions
from podium.live.run import RunOptions, SchedulerProcess
from podium.serving.signals import stop_on_signals
from podium.up.demonstration import demonstrate
from podium.up.kubeconfig import write_kubeconfig
from podium.up.manifests import Manifest
from podium.up.news import News
from podium.up.picture import Picture, take
from podium.up.sample_nodes import sample_shapes
from podium.up.screen import Screen

HOST: Final = "127.0.0.1"
_LOOK: Final = 0.05


class UpError(Exception):
    """Why the cluster cannot come up, in one sentence."""


class Wish(NamedTuple):
    """What the command line asks for."""

    nodes: int
    workload: list[Manifest]
    speed: float = 1.0
    port: int = 7070
    data: Path | None = None
    demo: bool = False
    stays: bool = True
    """Whether a demonstration goes on after it has shown what there is to show."""


async def up(config: SchedulerConfig, registry: Registry, wish: Wish, screen: Screen) -> int:
    """Run until told to stop; what is told to stop ends with 0."""
    stop = stop_on_signals()
    async with AsyncExitStack() as stack:
        api = _open(wish, stack)
        server = await _serve(api, wish.port)
        stack.push_async_callback(server.stop)
        news = News(api.store, time.monotonic, screen.tell)
        agents = await stack.enter_async_context(Agents(api, api.clock, api.rng, speed=wish.speed))
        await stack.enter_async_context(Controllers(api, api.clock, heartbeats=agents))
        agents.add_nodes(sample_shapes(wish.nodes))
        created = _create(api, wish.workload)
        kubeconfig = write_kubeconfig(server.url, server.port)
        stack.callback(kubeconfig.unlink, missing_ok=True)
        screen.say(_welcome(server.url, kubeconfig, api, created))
        options = RunOptions(user_agent="podium-up", serving=ServingOptions(secure_port=0))
        scheduler = SchedulerProcess(config, registry, Access(server.url), options, stack)
        beside = [screen.run(_picture(scheduler, news, server.url)), _first_placed(news, screen)]
        if wish.demo:
            beside.append(_demonstrate(api, news, wish, screen, kubeconfig, stop))
        return await _run(scheduler, beside, stop)


def _picture(scheduler: SchedulerProcess, news: News, address: str) -> Callable[[], Picture]:
    began = time.monotonic()
    return lambda: take(scheduler.live.engine, news, address, time.monotonic() - began)


async def _demonstrate(api: Api, news: News, wish: Wish, screen: Screen, kubeconfig: Path, stop: asyncio.Event) -> None:
    await demonstrate(api, news, screen, kubeconfig)
    if not wish.stays:
        stop.set()


async def _run(scheduler: SchedulerProcess, beside: Iterable[Coroutine[Any, Any, None]], stop: asyncio.Event) -> int:
    """The scheduler until it ends, and beside it what is shown."""
    tasks = [asyncio.create_task(each) for each in beside]
    try:
        return await scheduler.run(stop)
    finally:
        for task in tasks:
            task.cancel()
        for outcome in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(outcome, Exception):
                raise outcome


# The parts


def _open(wish: Wish, stack: AsyncExitStack) -> Api:
    database = None
    if wish.data is not None:
        try:
            database = Database(wish.data)
        except DatabaseError as error:
            raise UpError(f"--data {error}") from None
        stack.callback(database.close)
    return Api(clock=SystemClock(), rng=random.Random(), database=database)


async def _serve(api: Api, port: int) -> Server:
    server = Server(api, host=HOST, port=port)
    try:
        await server.start()
    except PortInUseError as error:
        raise UpError(f"{error}; give another port with --port, or --port 0 for any that is free") from None
    return server


def _create(api: Api, workload: list[Manifest]) -> int:
    """Create what is not there yet; how many pods that will make is not known, how many objects is."""
    created = 0
    for manifest in workload:
        kind = api.kinds.by_kind(manifest["apiVersion"], manifest["kind"])
        name = (manifest.get("metadata") or {}).get("name", "")
        if kind is None:
            raise UpError(
                f"--workload: {manifest['kind']} {name}: this API has no such kind in version {manifest['apiVersion']}"
            )
        try:
            api.create(kind, manifest, field_validation="Strict", manager="podium-up")
        except StatusError as error:
            if error.reason != "AlreadyExists":
                raise UpError(f"--workload: {manifest['kind']} {name}: {error.message}") from None
        else:
            created += 1
    return created


def _welcome(url: str, kubeconfig: Path, api: Api, created: int) -> str:
    kept = f", {pods} pods from before" if (pods := api.store.count(POD) - created) > 0 else ""
    return "\n".join(
        (
            f"{api.store.count(NODE)} nodes on {url}, {created} objects created{kept}",
            f"export KUBECONFIG={kubeconfig}",
            "kubectl get pods -A -o wide",
        )
    )


# What is told once


async def _first_placed(news: News, screen: Screen) -> None:
    """Say how long a reader had to wait for the first pod to have a node."""
    while news.first_placed is None:
        await asyncio.sleep(_LOOK)
    waited = process_age() - (time.monotonic() - news.first_placed)
    screen.say(f"first pod placed {waited:.1f} s after the start")


def process_age() -> float:
    """Seconds since this process began, its imports included."""
    try:
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError, ValueError):
        return time.process_time()
