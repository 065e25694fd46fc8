"""Runs one scenario with one profile and one seed: the engine, driven by events in virtual time.

    decide all that is ready → jump to the next moment → let happen what is due then → decide …

A moment is an arrival, an act on the timeline (a pod ends, a node fails, usage is measured, figures are taken) or a
timer of the engine (a back-off is over). Without a duration the run ends when no pod can arrive, start or end any more.
"""

from __future__ import annotations

import gc
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec
import numpy as np
from numpy.typing import NDArray

from podium.config import Registry, SchedulerConfig
from podium.config.durations import SECOND
from podium.engine.scheduler import Scheduler
from podium.framework.handle import Driver
from podium.framework.protocols import ModelPlugin
from podium.kube import Node
from podium.load.readings import GivenLoad
from podium_lab.simulator.distributions import generator, sampler
from podium_lab.simulator.faults import NodeFaults
from podium_lab.simulator.figures import COLUMNS, CheckpointFigures, GpuFigures
from podium_lab.simulator.live_pods import LivePods, main_reason
from podium_lab.simulator.nodes import gpu_capacity, node_latencies, scenario_nodes
from podium_lab.simulator.pod_classes import ClassResult
from podium_lab.simulator.pod_lives import SimulatedPodLives
from podium_lab.simulator.pods import PodArrival
from podium_lab.simulator.qos_figures import QosFigures, SimulatedQosPage
from podium_lab.simulator.reading import LoadedScenario
from podium_lab.simulator.rewards import RewardGiver
from podium_lab.simulator.timeline import NEVER, EventTimeline, SimulatedClock
from podium_lab.simulator.usage import UsageMeter, traits_sampler
from podium_lab.simulator.virtual_writer import VirtualWriter
from podium_lab.simulator.workload import arrivals, has_priorities, set_objects, typical_of, workloads

PATIENCE = 1800.0
"""Virtual seconds without a placement after which waiting pods are given up, when nothing else is to come."""
DEFAULT_EVERY = 300.0
"""Seconds between checkpoints where a scenario does not say."""
READS_ANNOTATIONS = frozenset(("SafeOverload", "SafeBalance"))

PROGRESS_EVERY = 1000
"""Arrivals between two reports of progress."""

Progress = Callable[[int], None]


@contextmanager
def rare_collections() -> Iterator[None]:
    """Have Python look for garbage in cycles less often: there is next to none, and looking costs a tenth of a run."""
    before = gc.get_threshold()
    gc.set_threshold(50_000, 20, 50)
    try:
        yield
    finally:
        gc.set_threshold(*before)


class RunResult(msgspec.Struct, frozen=True):
    """What came of one run."""

    profile: str
    seed: int
    table: NDArray[np.float64]
    """float64[checkpoints, columns]."""
    unplaced: dict[str, int]
    """Pods that never got a node, by reason."""
    waits: NDArray[np.int64]
    """int64[bins]: how many pods waited how long."""
    notes: tuple[str, ...] = ()
    """What the reader should know of this run."""
    classes: tuple[ClassResult, ...] = ()
    not_reproducible: tuple[str, ...] = ()
    """Why the run can't be repeated, where real time had a part in its decisions."""


class SimulatedRun:
    """One scheduler and its world."""

    def __init__(
        self, loaded: LoadedScenario, name: str, seed: int, config: SchedulerConfig, registry: Registry
    ) -> None:
        scenario = loaded.scenario
        self._loaded = loaded
        self._name = name
        self._seed = seed
        self._clock = SimulatedClock()
        self._timeline = EventTimeline()
        load = GivenLoad()
        self._reports: Counter[str] = Counter()
        self._usage: UsageMeter | None = None
        self._page: SimulatedQosPage | None = None
        sources = workloads(scenario, loaded.source)
        self._qos = QosFigures() if any(each.broker is not None for each in sources) else None
        self._pods = LivePods(self._clock, self._qos)
        self._lives = SimulatedPodLives(
            self._pods,
            self._clock,
            self._timeline,
            start_delay=sampler(scenario.start_delay, generator(seed, "delays"), time=True),
            evicted=scenario.evicted,
            start_times=any(map(has_priorities, sources)),
            qos=self._qos,
        )
        drop = scenario.unschedulable == "drop"
        self._writer = writer = VirtualWriter(self._pods, self._lives, self._clock, drop=drop)
        self._scheduler = scheduler = Scheduler(
            config,
            registry,
            Driver(
                clock=self._clock,
                writer=writer,
                rng=random.Random(seed),
                load=load,
                report=self._report,
            ),
            writer,
        )
        self._pods.intake = scheduler.intake
        self._traits: Callable[[], tuple[float, ...]] | None = None
        if scenario.usage is not None:
            enabled = {plugin for profile in config.profiles for point in profile.plugins.values() for plugin in point}
            annotated = scheduler.intake.set if enabled & READS_ANNOTATIONS else None
            self._usage = UsageMeter(scenario.usage, scheduler.cluster, load, annotated, seed)
            self._usage.latency = node_latencies(loaded, seed)
            self._traits = traits_sampler(scenario.usage, seed)
            self._pods.usage = self._usage
            if scenario.rewards is not None:
                rng = generator(seed, "rewards")
                self._lives.rewards = RewardGiver(scenario.rewards, self._usage, scheduler.cluster, rng)
        self._only_name = config.profiles[0].scheduler_name if len(config.profiles) == 1 else None
        self._decision = scenario.decision / SECOND
        self._end = NEVER if scenario.duration is None else scenario.duration / SECOND

    @property
    def scheduler(self) -> Scheduler:
        """The engine that decides in this run."""
        return self._scheduler

    @property
    def usage(self) -> UsageMeter | None:
        """What nodes use; None where the scenario measures nothing."""
        return self._usage

    @property
    def time(self) -> float:
        """Virtual seconds since the run began."""
        return self._clock.time

    @property
    def now(self) -> float:
        """The engine's time."""
        return self._clock.now()

    @property
    def pending(self) -> int:
        """How many pods wait for a node."""
        return self._pods.pending

    @property
    def placed(self) -> int:
        """How many pods got a node so far."""
        return self._pods.counts.placed

    @property
    def arrived(self) -> int:
        """How many pods came so far."""
        return self._pods.counts.arrived

    def watch_usage(self) -> None:
        """Keep what is measured for readers that aren't plugins."""
        if self._usage is not None:
            self._usage.followed = True

    def decided(self) -> None:
        """Tell the scheduler what became of its writes, after each decision; where decisions take time, that passes."""
        self._writer.deliver()
        if self._decision:
            self._clock.time += self._decision
            if self._timeline.next_time <= self._clock.time:
                self._timeline.happen(self._clock.time)

    def _report(self, message: str) -> None:
        self._reports[message] += 1

    def set_up(self) -> list[Node]:
        """Give the scheduler its cluster: nodes, and what there is beside nodes and pods."""
        scenario, intake = self._loaded.scenario, self._scheduler.intake
        nodes = scenario_nodes(self._loaded)
        if scenario.node_order == "shuffled":
            nodes = [nodes[i] for i in generator(self._seed, "order").permutation(len(nodes))]
        for node in nodes:
            intake.set(node)
        for name in scenario.objects:
            set_objects(self._loaded.source.find(name), intake)
        return nodes

    def run(self, progress: Progress = lambda _arrived: None, page: SimulatedQosPage | None = None) -> RunResult:
        """Simulate to the end; with a page, how controllers stand is shown on it meanwhile."""
        self._page = page if self._qos is not None else None
        with rare_collections():
            for _ in self.moments(progress):
                self._decide()
        return self._finish(progress)

    def moments(self, progress: Progress = lambda _arrived: None) -> Iterator[None]:
        """Simulate, and stop whenever pods may be ready: whoever takes the next moment has decided about them."""
        loaded, scheduler, pods = self._loaded, self._scheduler, self._pods
        scenario = loaded.scenario
        nodes = self.set_up()
        gpus = None
        capacity = gpu_capacity(nodes)
        if capacity:
            given = workloads(scenario, loaded.source)
            gpus = GpuFigures(scheduler.cluster, capacity, typical_of(given, loaded.source))
        arrived_pct = scenario.checkpoints.arrived_pct
        figures = CheckpointFigures(
            pods, scheduler.cluster, gpus, self._usage, arrived_pct, self._qos, self._lives.rewards
        )
        faults = NodeFaults(
            loaded,
            generator(self._seed, "faults"),
            clock=self._clock,
            timeline=self._timeline,
            cluster=scheduler.cluster,
            pods=pods,
            lives=self._lives,
        )
        self._plan_background(figures)
        self._figures, self._faults = figures, faults
        yield from self._loop(arrivals(loaded, self._seed, capacity), figures, progress)

    def _finish(self, progress: Progress) -> RunResult:
        scenario, figures = self._loaded.scenario, self._figures
        if scenario.checkpoints.arrived_pct is not None:
            figures.close_percent(last=True)
        else:
            figures.take(self._clock.time)
        progress(self._pods.counts.arrived)
        result = self._result(figures, self._faults)
        self._scheduler.cluster.facts.forget_notes()  # they lead back to the cluster, which could never be freed
        return result

    def _plan_background(self, figures: CheckpointFigures) -> None:
        scenario, timeline, clock = self._loaded.scenario, self._timeline, self._clock
        usage = self._usage
        if usage is not None:
            assert scenario.usage is not None
            interval, late = scenario.usage.interval / SECOND, scenario.usage.late / SECOND

            def publish(_: object) -> None:
                usage.publish()

            def measure(_: object) -> None:
                if usage.measure(clock.now(), clock.time):
                    timeline.plan(clock.time + late, publish, background=True)
                timeline.plan(clock.time + interval, measure, background=True)

            timeline.plan(interval, measure, background=True)
        if scenario.checkpoints.arrived_pct is None:
            every = DEFAULT_EVERY if scenario.checkpoints.every is None else scenario.checkpoints.every / SECOND

            def take(number: int) -> None:
                figures.take(number * every)
                timeline.plan((number + 1) * every, take, number + 1, background=True)

            timeline.plan(every, take, 1, background=True)

    def _loop(self, stream: Iterator[PodArrival], figures: CheckpointFigures, progress: Progress) -> Iterator[None]:
        clock, timeline, scheduler = self._clock, self._timeline, self._scheduler
        pods, counts = self._pods, self._pods.counts
        traits, only_name, end = self._traits, self._only_name, self._end
        by_demand = self._loaded.scenario.checkpoints.arrived_pct is not None
        page, qos = self._page, self._qos
        coming = next(stream, None)
        if qos is not None and coming is not None:
            end += coming.at  # an experiment begins with the first row of its file, whatever its time
        placed, placed_at, reported = 0, 0.0, 0
        while True:
            waiting = pods.pending
            if waiting:
                yield
                waiting = pods.pending
            if page is not None and qos is not None:
                page.show(qos, clock.now(), counts.preempted)
            at = timeline.next_time
            if coming is not None and coming.at < at:
                at = coming.at
            timer = scheduler.next_timer() if waiting else None
            due = NEVER
            if timer is not None:
                due = clock.reaching(timer)
                at = min(at, due)
            if coming is None and not timeline.awaited:
                if not waiting:
                    return
                if counts.placed != placed:
                    placed, placed_at = counts.placed, clock.time
                if at - placed_at > PATIENCE:
                    return
            if at > end or at == NEVER:
                clock.time = max(clock.time, min(end, at)) if end < NEVER else clock.time
                return
            at = max(at, clock.time)
            clock.time = at
            if due <= at:
                scheduler.tick()
            if timeline.next_time <= at:
                timeline.happen(at)
            while coming is not None and coming.at <= at:
                template = coming.template
                if only_name is not None:
                    template.for_scheduler(only_name)
                figures.arrived(template)
                self._lives.arrive(coming, () if traits is None else traits())
                if by_demand:
                    yield
                    figures.record()
                coming = next(stream, None)
                placed_at = clock.time
            if counts.arrived - reported >= PROGRESS_EVERY:
                reported = counts.arrived
                progress(reported)

    def _decide(self) -> None:
        """Decide while pods are ready; where decisions take time, until something is due."""
        schedule_one = self._scheduler.schedule_one
        if not self._decision:
            deliver = self._writer.deliver
            while schedule_one() is not None:
                deliver()
            return
        while schedule_one() is not None:
            self.decided()

    def _real_time(self) -> tuple[str, ...]:
        """Where real time had a part in what was decided."""
        plugins = [plugin for runtime in self._scheduler.profiles.values() for plugin in runtime.plugins.values()]
        found = [plugin.not_reproducible for plugin in plugins if isinstance(plugin, ModelPlugin)]
        return tuple(why for why in dict.fromkeys(found) if why)

    def _result(self, figures: CheckpointFigures, faults: NodeFaults) -> RunResult:
        pods = self._pods
        unplaced = Counter(pods.dropped)
        for live in pods.by_uid.values():
            if live.node_name:
                live.cell.running += 1
            else:
                live.cell.pending += 1
                unplaced[main_reason(live.message)] += 1
        notes = [f"{message} ({number} times)" for message, number in self._reports.most_common(5)]
        if self._usage is not None:
            notes += [f"nothing measures {series}; it stays empty" for series in sorted(self._usage.unknown)]
        real_time = self._real_time()
        notes += [f"this run is not reproducible: {why}" for why in real_time]
        if pods.classes.untold:
            notes.append(f"{pods.classes.untold} pods are in no class: there are too many combinations of labels")
        if faults.happened:
            notes.append(f"faults of nodes: {faults.happened}")
        return RunResult(
            self._name,
            self._seed,
            np.array(figures.rows, dtype=np.float64).reshape(-1, len(COLUMNS)),
            dict(sorted(unplaced.items(), key=lambda each: (-each[1], each[0]))),
            np.array(pods.counts.waits.counts, dtype=np.int64),
            tuple(notes),
            pods.classes.results(),
            real_time,
        )
