"""Runs the scheduler: pods arrive, are decided and come back bound, while other things happen on the side.

Time is notional: every decision takes one millisecond of it, as if the scheduler decided 1,000 pods a second. What a
workload does by the clock (a pod every 200 ms, 50 deletions a second) thereby happens every so many decisions, in every
run and on every machine the same. When nothing can be decided, time jumps to whatever comes next.

Measured is the time from the arrival of the first measured pod to the last decision about one, with all that happens
in between; and for each measured pod the time of its own decisions, its share of arriving, and its way back from the
API server.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from time import perf_counter_ns
from typing import Any

from podium.config import Registry, SchedulerConfig
from podium.engine.decide import decide
from podium.engine.sampling import Sampling
from podium.engine.scheduler import Scheduler
from podium.framework.clock import ManualClock
from podium.framework.cycle import Cycle
from podium.framework.handle import Driver
from podium.kube import Pod
from tools.bench.api import ApiStandIn
from tools.bench.steady_load import SteadyLoad

DECISION = 0.001
"""Notional seconds per decision."""

TOGETHER = 100
"""How many pods arrive before the scheduler gets to decide, as a watch delivers them in batches."""

CONFIRMATIONS_ARE_MEASURED = True
"""A placed pod comes back from the API server with its node right after its decision; taking that in is part of a
scheduler's work and of what is measured. Set to False, it still happens then, but its time is left out."""

PATIENCE = 900.0
"""Notional seconds without any binding after which waiting is given up: then no pod will ever fit."""

SAMPLES = 3
"""Of how many measured pods it is noted how many nodes are ranked for them, before and after the measurement."""

START = 1_767_225_600.0

Stream = Iterator[object]
"""Things that happen on the side: each `next` is one of them."""


class WorkloadRun:
    """One scheduler, its API server, and the clock both live by."""

    def __init__(
        self,
        config: SchedulerConfig,
        registry: Registry,
        on_phase: Callable[[str], None],
        turn: Callable[[], None] | None = None,
    ) -> None:
        """`turn` is called before each batch of measured pods and may take its time, which is left out."""
        self.clock = ManualClock(START)
        self.api = ApiStandIn(self.clock)
        self.load = SteadyLoad()
        self.scheduler = Scheduler(
            config,
            registry,
            Driver(
                clock=self.clock,
                writer=self.api,
                load=self.load,
            ),
            self.api,
        )
        self.api.intake = self.scheduler.intake
        self.on_phase = on_phase
        self._turn = turn
        self.spent: dict[str, int] = {}
        """Nanoseconds spent on each measured pod, by uid."""
        self.nodes_scored = 0
        self._samples: Sequence[Pod] = ()
        self._began = self._ended = self._left_out = 0
        self._streams: list[list[Any]] = []
        self._due = START
        self._next_tick = START

    @property
    def elapsed(self) -> int:
        """Nanoseconds from the first measured pod's arrival to the last decision about one."""
        return self._ended - self._began - self._left_out

    @property
    def nodes(self) -> int:
        return len(self.scheduler.cluster.order.rows)

    # What operations ask for

    def arrive(self, arrivals: Sequence[tuple[Any, ...]], *, measured: bool, wait: bool) -> None:
        """Let pods in, each behind the objects it needs; decide as they come, and to the end if that is waited for."""
        pods: list[Pod] = [objects[-1] for objects in arrivals]
        if measured and not self._began:
            self._begin(pods)
        self.api.awaited = {pod.uid for pod in pods} if wait else set()
        for start in range(0, len(arrivals), TOGETHER):
            if measured and self._turn is not None:
                self._wait(self._turn)
            began = perf_counter_ns()
            for *needed, pod in arrivals[start : start + TOGETHER]:
                for each in needed:
                    self.scheduler.intake.set(each)
                self.api.submit(pod)
            batch = pods[start : start + TOGETHER]
            if measured:
                share = (perf_counter_ns() - began) // len(batch)
                self.spent.update((pod.uid, share) for pod in batch)
            if wait:
                self.decide(len(batch))
        self._settle()

    def settle(self) -> None:
        """Decide until every measured pod is bound."""
        self.api.awaited = {uid for uid in self.spent if not self.is_bound(uid)}
        self._settle()

    def is_bound(self, uid: str) -> bool:
        """Whether a pod got its node; it may have ended since."""
        pod = self.api.pods.get(uid)
        return pod is None or bool(pod.node_name)

    def _settle(self) -> None:
        """Decide until every awaited pod is bound."""
        seen, since = self.api.bindings, self.clock.now()
        while self.api.awaited:
            self.decide(until_bound=True)
            if self.api.bindings != seen:
                seen, since = self.api.bindings, self.clock.now()
            if self.api.awaited and (self.clock.now() - since > PATIENCE or not self._sleep()):
                return

    def decide(self, most: int | None = None, *, until_bound: bool = False) -> None:
        """Decide while pods are ready: at most so many times, or until every awaited pod is bound."""
        schedule_one, deliver, spent = self.scheduler.schedule_one, self.api.deliver, self.spent
        clock, awaited = self.clock, self.api.awaited
        left = -1 if most is None else most
        while left and (awaited or not until_bound):
            if clock.now() >= self._due:
                self._happen()
            began = perf_counter_ns()
            queued = schedule_one()
            if queued is None:
                return
            if not CONFIRMATIONS_ARE_MEASURED:
                decided = perf_counter_ns()
                deliver()
                began += perf_counter_ns() - decided
                self._left_out += perf_counter_ns() - decided
            else:
                deliver()
            ended = perf_counter_ns()
            uid = queued.pod.metadata.uid
            if uid in spent:
                spent[uid] += ended - began
                self._ended = ended
            clock.advance(DECISION)
            left -= 1

    def on_the_side(self, stream: Stream, per_second: float) -> None:
        """Let things happen while pods are decided, the first one now."""
        self._streams.append([self.clock.now(), 1.0 / per_second, stream])
        self._due = self.clock.now()

    def play(self, stream: Stream, per_second: float) -> None:
        """Let things happen and decide what they bring about, until there are no more."""
        self.on_the_side(stream, per_second)
        mine = self._streams[-1]
        while any(each is mine for each in self._streams):
            self.decide()
            self._sleep()

    # How time passes

    def _happen(self) -> None:
        """Whatever is due by now, of every stream at most once."""
        now = self.clock.now()
        if now >= self._next_tick:
            self.scheduler.tick()
            cluster = self.scheduler.cluster
            self.load.refresh((cluster.names[row] for row in cluster.order.rows), now)
            self._next_tick = now + 1.0
        for stream in list(self._streams):
            if stream[0] <= now:
                stream[0] += stream[1]
                if next(stream[2], self) is self:
                    self._streams = [each for each in self._streams if each is not stream]
        self._due = min((stream[0] for stream in self._streams), default=self._next_tick)
        self._due = min(self._due, self._next_tick)

    def _sleep(self) -> bool:
        """Let time jump to the next thing that happens; False when nothing ever will."""
        times = [stream[0] for stream in self._streams]
        timer = self.scheduler.queue.next_timer()
        if timer is not None:
            times.append(timer)
        if not times:
            return False
        self.clock.advance(max(0.0, min(times) - self.clock.now()))
        self._next_tick = min(self._next_tick, self.clock.now())
        self._happen()
        return True

    # Around the measurement

    def _wait(self, turn: Callable[[], None]) -> None:
        began = perf_counter_ns()
        turn()
        self._left_out += perf_counter_ns() - began

    def finish(self) -> None:
        """Look once more at how many nodes are ranked, now that all pods are placed."""
        self._note_nodes_scored()

    def _begin(self, pods: Sequence[Pod]) -> None:
        """Whatever waits is decided first: the measurement starts with an empty queue and no garbage."""
        self.decide()
        self._samples = pods[:SAMPLES]
        self._note_nodes_scored()
        self.on_phase("measuring")
        gc.collect()
        self._left_out = 0
        self._began = self._ended = perf_counter_ns()

    def _note_nodes_scored(self) -> None:
        self.nodes_scored = max([self.nodes_scored, *map(self._feasible_for, self._samples)])

    def _feasible_for(self, pod: Pod) -> int:
        """How many nodes would be ranked for the pod as the cluster is now. Not part of what is measured."""
        scheduler = self.scheduler
        runtime = scheduler.profiles.get(pod.spec.scheduler_name)
        if runtime is None or not self.nodes:
            return 0
        sampling = scheduler.sampling
        unnoticed = Sampling(sampling.percentage, sampling.parity, sampling.next_start)
        return len(decide(runtime, Cycle(pod, scheduler.cluster), unnoticed).search.feasible)
