"""`podium up`: the API, the controllers, the nodes, the scheduler and a workload, in one process on one event loop.

The scheduler is the very process that `podium run` starts, and it reaches the API over HTTP on the loopback, as any
scheduler would; controllers and nodes work on the API directly. The order is that of a cluster coming up: first the
API, then nodes and controllers, then the scheduler, then the workload. What is told to stop stops in the reverse order.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import sys
import time
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final, NamedTuple

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
from podium.live.endpoints import ServingOptions
from podium.live.run import Options, Process
from podium.serving.signals import stop_on_signals
from podium.whole.kubeconfig import write_kubeconfig
from podium.whole.manifests import Manifest
from podium.whole.news import News
from podium.whole.picture import Picture, take
from podium.whole.sample_nodes import sample_shapes
from podium.whole.screen import Screen

HOST: Final = "127.0.0.1"
_WIDTH: Final = 120
_LOOK: Final = 0.05
_QUIET: Final = 0.5
"""Seconds without a decision after which a workload counts as placed."""
_LONGEST: Final = 60.0
"""Seconds after which a demonstration goes on, placed or not."""


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
        options = Options(user_agent="podium-up", serving=ServingOptions(secure_port=0))
        scheduler = Process(config, registry, Access(server.url), options, stack)
        shown = Shown(scheduler, news, server.url)
        return await _run(scheduler, shown, wish, screen, kubeconfig, stop)


class Shown:
    """What the screen asks for again and again."""

    def __init__(self, scheduler: Process, news: News, address: str) -> None:
        self.news = news
        self._engine = scheduler.live.engine
        self._address = address
        self._began = time.monotonic()

    def picture(self) -> Picture:
        return take(self._engine, self.news, self._address, time.monotonic() - self._began)


async def _run(
    scheduler: Process, shown: Shown, wish: Wish, screen: Screen, kubeconfig: Path, stop: asyncio.Event
) -> int:
    """The scheduler until it ends, and beside it what is shown."""
    beside = [asyncio.create_task(screen.run(shown.picture)), asyncio.create_task(_first_placed(shown.news, screen))]
    if wish.demo:
        beside.append(asyncio.create_task(_demonstrate(shown.news, wish, screen, kubeconfig, stop)))
    try:
        return await scheduler.run(stop)
    finally:
        for task in beside:
            task.cancel()
        for outcome in await asyncio.gather(*beside, return_exceptions=True):
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


async def _demonstrate(news: News, wish: Wish, screen: Screen, kubeconfig: Path, stop: asyncio.Event) -> None:
    """When everything has been decided, explain what fits nowhere; then stop, unless somebody looks on."""
    await _decided(news)
    refused = news.refused()
    screen.say(f"\n{news.placed} pods placed, {len(refused)} without a node")
    if refused:
        command = ["explain", refused[0].pod, "--kubeconfig", str(kubeconfig)]
        screen.say(f"\n$ podium {' '.join(command)}\n")
        screen.say(await _podium(*command))
    if not wish.stays:
        stop.set()


async def _decided(news: News) -> None:
    """Wait until every pod has a node or a refusal, and no new ones come."""
    end = time.monotonic() + _LONGEST
    quiet_since, seen = time.monotonic(), -1
    while time.monotonic() < end and (time.monotonic() - quiet_since < _QUIET or not news.pods):
        await asyncio.sleep(_LOOK)
        if news.undecided or news.pods != seen:
            quiet_since, seen = time.monotonic(), news.pods


async def _podium(*arguments: str) -> str:
    """What another podium prints, as wide as this one may."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "podium",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "COLUMNS": str(shutil.get_terminal_size((_WIDTH, 0)).columns)},
    )
    try:
        out, _ = await process.communicate()
    except asyncio.CancelledError:
        process.kill()
        raise
    return out.decode().rstrip()


def process_age() -> float:
    """Seconds since this process began, its imports included."""
    try:
        ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, AttributeError, ValueError):
        return time.process_time()
