"""Supervises scheduler processes: starts them, and starts them again whenever they end, as a Deployment does."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import AsyncExitStack

from podium.client import Access
from podium.client.access import Route
from podium.cluster import Cluster
from podium.config.registry import Registry
from podium.config.resolved import SchedulerConfig
from podium.engine.scheduler import Scheduler
from podium.run.assembly import RunOptions, build_process
from podium.run.process import SchedulerProcess
from podium.serving.environment import ProcessEnvironment
from tools.chaos.network import Connector, Network
from tools.chaos.transcript import Transcript
from tools.kit.virtual_time import VirtualProcess, outside

EPOCH = 1_800_000_000.0
SERVER_NAME = "api"
SERVER = f"http://{SERVER_NAME}:80"


class VirtualClock:
    """A time of day that goes on with the loop's; `wrong` by so many seconds."""

    def __init__(self, wrong: float = 0.0) -> None:
        self._wrong = wrong

    def now(self) -> float:
        return EPOCH + self._wrong + asyncio.get_running_loop().time()


class Replicas:
    """`number` schedulers, each on a machine with a clock of its own."""

    def __init__(
        self,
        number: int,
        config: SchedulerConfig,
        registry: Registry,
        rng: random.Random,
        network: Network,
        transcript: Transcript,
    ) -> None:
        self._config = config
        self._registry = registry
        self._rng = rng
        self._network = network
        self._transcript = transcript
        self._clocks = [VirtualClock(rng.choice([0.0, rng.uniform(-3600, 3600)])) for _ in range(number)]
        self._running: dict[VirtualProcess, SchedulerProcess] = {}
        self._engines: list[Scheduler] = []
        self._started = 0
        self._tasks: list[asyncio.Task[None]] = []
        self.crashed: list[str] = []
        self.started: Callable[[VirtualProcess, SchedulerProcess], None] = lambda _process, _scheduler: None

    def start(self) -> None:
        self._tasks = [outside(self._supervise(number)) for number in range(len(self._clocks))]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        for process in self.alive():
            await self.kill(process)
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for engine in self._engines:
            dismantle(engine.cluster)

    def alive(self) -> list[VirtualProcess]:
        return list(self._running)

    def scheduler_of(self, process: VirtualProcess) -> SchedulerProcess | None:
        return self._running.get(process)

    def schedulers(self) -> dict[VirtualProcess, SchedulerProcess]:
        return dict(self._running)

    async def kill(self, process: VirtualProcess) -> None:
        """As by SIGKILL: nothing is said, connections break."""
        process.killed = True
        self._network.hang_up(process)
        await process.kill()

    async def _supervise(self, number: int) -> None:
        await asyncio.sleep(self._rng.uniform(0, 2))
        while True:
            self._started += 1
            process = VirtualProcess(f"sched-{'ab'[number]}{self._started}")
            rng = random.Random(self._rng.getrandbits(64))
            self._transcript.note(process.name, "starts")
            task = process.within(self._run(process, self._clocks[number], rng))
            await asyncio.wait([task])
            self._running.pop(process, None)
            how = "killed" if process.killed else "cancelled" if task.cancelled() else _ending(task)
            self._transcript.note(process.name, how)
            if how.startswith("failed"):
                self.crashed.append(f"{process.name} {how}")
            await self.kill(process)  # with its main task all of a process ends
            await asyncio.sleep(self._rng.uniform(0.5, 5))

    async def _run(self, process: VirtualProcess, clock: VirtualClock, rng: random.Random) -> int:
        loop = asyncio.get_running_loop()
        environment = ProcessEnvironment(clock, rng, loop.time, process.name, _nothing)
        access = Access(SERVER, route=Route(compression=False, connector=Connector))
        async with AsyncExitStack() as stack:
            scheduler = build_process(self._config, self._registry, access, RunOptions(), stack, environment)
            self._running[process] = scheduler
            self._engines.append(scheduler.live.engine)
            self.started(process, scheduler)
            return await scheduler.run(asyncio.Event())


def dismantle(cluster: Cluster) -> None:
    """Let a cluster be collected: placed pods are kept out of the collector's sight, and by way of plugins' notes they
    lead back to it. A process has one cluster for life; thousands of seeds have thousands."""
    cluster.facts.forget_notes()
    cluster.pods.clear()
    cluster.pods_on.clear()


def _nothing() -> None:
    pass


def _ending(task: asyncio.Task[int]) -> str:
    error = task.exception()
    return f"ended with {task.result()}" if error is None else f"failed: {type(error).__name__}: {error}"
