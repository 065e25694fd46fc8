"""Runs one seed: a cluster, schedulers and faults, from a calm start to a calm end, with every invariant checked.

0 s ── calm ── faults ── calm ── as soon as everything is as it must be, or SETTLE seconds after the faults
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from aiohttp import web

from podium.config.load import default_config, load_config
from podium.config.registry import Registry
from podium.serving.log import LOG
from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.http.server import ApiServer
from podium_cluster.controllers.context import ControllerContext
from podium_cluster.controllers.garbage import GarbageCollector
from podium_cluster.controllers.resource_claims import ResourceClaims
from podium_cluster.controllers.volumes import Volumes
from tools.chaos.devices import DEVICES_COUNTED, NONE_UNUSED, miscounted_devices, unused_devices
from tools.chaos.final_checks import (
    NO_POD_LOST,
    NOTHING_LEFT,
    SAME_CLUSTER,
    Truth,
    differences,
    leftovers,
    lost_pods,
    placeable_pods,
    too_many_tasks,
    under_way,
)
from tools.chaos.gangs import CONFIG as GANG_CONFIG
from tools.chaos.gangs import NO_RESERVATION_LEAKED, leaked_reservations
from tools.chaos.invariants import Invariants, Violation
from tools.chaos.machines import Machines
from tools.chaos.network import End, Network
from tools.chaos.promises import CONFIG as QOS_CONFIG
from tools.chaos.promises import EvictionBound
from tools.chaos.quotas import CONFIG as QUOTA_CONFIG
from tools.chaos.quotas import QUOTAS_HELD, wrong_accounts
from tools.chaos.replicas import SERVER_NAME, Replicas, VirtualClock
from tools.chaos.request_faults import Handler, RequestFaults
from tools.chaos.timed_faults import TimedFaults
from tools.chaos.transcript import LogToTranscript, Transcript
from tools.chaos.workloads import (
    PodMixture,
    draw_arrivals,
    draw_devices,
    draw_groups,
    draw_nodes,
    draw_quota_edits,
    draw_quotas,
    draw_volumes,
    draw_workload,
    in_gang,
    in_team,
    promised,
    with_device,
    workload_of,
)
from tools.kit.virtual_time import VirtualLoop, outside

SETTLE = 240.0
"""Virtual seconds after the faults within which all must be well: a silent watch is noticed after 150."""
LOOK_EVERY = 2.0
SETTLED = (
    *(NO_POD_LOST, SAME_CLUSTER, NOTHING_LEFT, NO_RESERVATION_LEAKED, QUOTAS_HELD),
    *(NONE_UNUSED, DEVICES_COUNTED),
)
"""What is checked after the faults."""
LOGGERS = (LOG, logging.getLogger("aiohttp.server"), logging.getLogger("asyncio"))
MOST_CONNECTIONS = 150
"""Of one scheduler: as many as its pools may keep."""


class ScenarioOutcome(NamedTuple):
    """How the run of a seed went."""

    seed: int
    workload: str
    violations: list[Violation]
    checked: Counter[str]
    injected: Counter[str]
    pods: int
    bound: int
    excused: int
    seconds: float
    """Virtual ones."""
    transcript: list[str]


def run_scenario(seed: int, workload: PodMixture | None, registry: Registry) -> ScenarioOutcome:
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(FaultScenario(seed, workload, registry).run())


class FaultScenario:
    """What one seed makes, and its run."""

    def __init__(self, seed: int, workload: PodMixture | None, registry: Registry) -> None:
        self.seed = seed
        self.registry = registry
        self.transcript = Transcript()
        self.workload = workload or workload_of(seed) or draw_workload(self._rng("workload"))
        self.with_quotas = in_team in self.workload.pods
        if in_gang in self.workload.pods:
            self.config = load_config(GANG_CONFIG, "gangs", registry).config
        elif self.with_quotas:
            self.config = load_config(QUOTA_CONFIG, "quotas", registry).config
        elif promised in self.workload.pods:
            self.config = load_config(QOS_CONFIG, "promises", registry).config
        else:
            self.config = default_config(registry)

    def _rng(self, purpose: str) -> random.Random:
        """A generator for each purpose, so that a change in one leaves the others as they were.

        The names of purposes are part of the seed: with another name every scenario is another one.
        """
        return random.Random(f"{self.seed} {purpose}")

    async def run(self) -> ScenarioOutcome:
        log = LogToTranscript(self.transcript)
        before = [(logger, logger.handlers[:], logger.level, logger.propagate) for logger in LOGGERS]
        for logger in LOGGERS:
            logger.handlers[:], logger.propagate = [log], False
            logger.setLevel("INFO")
        try:
            return await self._run(log)
        finally:
            for logger, handlers, level, propagate in before:
                logger.handlers[:], logger.propagate = handlers, propagate
                logger.setLevel(level)

    async def _run(self, log: LogToTranscript) -> ScenarioOutcome:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        rng = self._rng("course")
        api = EmbeddedApi(clock=VirtualClock(), rng=self._rng("api"))
        network = loop.network = Network(self._rng("network"))
        faults = RequestFaults(self._rng("faults"), api, self.transcript)
        machines = Machines(api, self._rng("machines"), self.transcript)
        number = rng.choice([1, 2])
        replicas = Replicas(number, self.config, self.registry, self._rng("replicas"), network, self.transcript)
        invariants = Invariants(api, replicas.scheduler_of)
        network.sent = invariants.sent
        if promised in self.workload.pods:
            EvictionBound(api, invariants.count, invariants.violated)
        replicas.started = invariants.look_at
        nodes = draw_nodes(self._rng("nodes"))
        machines.build(nodes, draw_volumes(self._rng("volumes"), nodes))
        if with_device in self.workload.pods:
            machines.add_devices(draw_devices(self._rng("devices"), nodes))
        volumes = ControllerContext(api, VirtualClock())
        Volumes(volumes)
        if with_device in self.workload.pods:
            ResourceClaims(volumes)
            GarbageCollector(volumes)
            invariants.watch_devices()
        volumes.begin()
        controller = outside(volumes.work())
        answer = self._noted(faults.over(ApiServer(api, host=SERVER_NAME, rng=self._rng("server")).answer))
        network.listen("api", 80, web.Server(answer, handler_cancellation=True, access_log=None))

        calm, faulty = rng.uniform(3, 8), rng.uniform(40, 90)
        arrivals = draw_arrivals(self._rng("pods"), self.workload, nodes, calm + faulty - 5)
        machines.define_groups(draw_groups(arrivals))
        if self.with_quotas:
            quotas = draw_quotas(self._rng("quotas"), nodes)
            invariants.hold_quotas(quotas)
            machines.define_quotas(quotas, draw_quota_edits(self._rng("edits"), quotas, calm + faulty), 1.0)
        replicas.start()
        machines.expect(arrivals, 1.0, calm + faulty)
        timed_faults = TimedFaults(
            self._rng("storm"),
            api=api,
            network=network,
            request_faults=faults,
            machines=machines,
            replicas=replicas,
            transcript=self.transcript,
        )
        await asyncio.sleep(calm)
        self.transcript.note("scenario", f"faults begin: {number} scheduler(s), workload {self.workload.name}")
        await timed_faults.run(faulty)
        self.transcript.note("scenario", "faults end")
        await self._settle(api, replicas, network, invariants)
        invariants.check_nothing_broke(log.broken + replicas.crashed)
        truth = Truth(api)
        lines = list(self.transcript.lines)
        now = loop.time()
        await replicas.stop()
        controller.cancel()
        return ScenarioOutcome(
            self.seed,
            self.workload.name,
            invariants.violations,
            invariants.checked,
            faults.injected,
            len(arrivals),
            len(truth.placed),
            invariants.excused,
            now,
            lines,
        )

    def _noted(self, handler: Handler) -> Handler:
        """The handler, with every request in the transcript."""

        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            end = request.transport
            assert isinstance(end, End)
            self.transcript.note(end.link.client_name, f"{request.method} {request.path_qs}")
            response = await handler(request)
            if response.status >= 300:
                self.transcript.note("api", f"answers {response.status} to {request.method} {request.path}")
            return response

        return handle

    async def _settle(self, api: EmbeddedApi, replicas: Replicas, network: Network, invariants: Invariants) -> None:
        """Wait until everything is as it must be; what is not in time is a violation."""
        loop = asyncio.get_running_loop()
        end = loop.time() + SETTLE
        while True:
            await asyncio.sleep(LOOK_EVERY)
            problems = self._problems(api, replicas, network)
            first = next(problems, None)
            if first is None or loop.time() >= end:
                break
        for invariant in SETTLED:
            invariants.checked[invariant] += 1
        if first is not None:
            for invariant, what in (first, *problems):
                invariants.violated(invariant, what)

    def _problems(self, api: EmbeddedApi, replicas: Replicas, network: Network) -> Iterator[tuple[str, str]]:
        """What is not as it must be: (invariant, in what way); the cheap checks first."""
        schedulers = replicas.schedulers()
        leaders = [each for each in schedulers.values() if each.election is None or each.election.leading()]
        if len(leaders) != 1:
            yield NOTHING_LEFT, f"{len(leaders)} schedulers lead"
        for process, scheduler in schedulers.items():
            for what in under_way(scheduler):
                yield NOTHING_LEFT, f"{process.name}: {what}"
            if len(links := network.links(process)) > MOST_CONNECTIONS:
                yield NOTHING_LEFT, f"{process.name}: {len(links)} connections are open"
        truth = Truth(api)
        for what in lost_pods(truth):
            yield NO_POD_LOST, what
        for what in unused_devices(api, truth.pods):
            yield NONE_UNUSED, what
        for process, scheduler in schedulers.items():
            for what in leftovers(truth, scheduler.live.engine):
                yield NOTHING_LEFT, f"{process.name}: {what}"
            for what in leaked_reservations(truth.placed.values(), scheduler.live.engine):
                yield NO_RESERVATION_LEAKED, f"{process.name}: {what}"
            for what in wrong_accounts(truth.placed.values(), scheduler.live.engine):
                yield QUOTAS_HELD, f"{process.name}: {what}"
            for what in miscounted_devices(api, scheduler.live.engine):
                yield DEVICES_COUNTED, f"{process.name}: {what}"
            for what in differences(truth, scheduler.live.engine):
                yield SAME_CLUSTER, f"{process.name}: {what}"
            for what in too_many_tasks(process):
                yield NOTHING_LEFT, f"{process.name}: {what}"
        for what in placeable_pods(truth, self.config, self.registry, VirtualClock()):
            yield NO_POD_LOST, what
