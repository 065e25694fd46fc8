"""Drives the engine on a live cluster: informers feed it, and its decisions become bindings while it goes on deciding.

Everything runs on one event loop. Decisions are made in short bursts, so that watches and answers are read in between,
and pause while many bindings are under way: to decide faster than the API server binds would only make later decisions
on an older state. No pod is lost to a fault in Podium itself: an exception that escapes from a decision is logged, and
the pod goes back to the queue.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from podium.client import Client
from podium.client.informers import Informers, WatchedKinds, custom_kinds, watched_kinds
from podium.config.registry import Registry
from podium.config.resolved import SchedulerConfig
from podium.engine.scheduler import UNSCHEDULABLE, Scheduler
from podium.framework import Nomination, Status
from podium.framework.clock import Clock
from podium.framework.handle import Driver
from podium.framework.object_problems import ObjectProblem
from podium.framework.plugin_failures import FirstFailures
from podium.framework.pod_outcomes import PodOutcomes
from podium.framework.queued import QueuedPod
from podium.framework.timer import UNTIMED
from podium.framework.waiting import WaitingPod
from podium.kube import Condition, Node, Pod, PodGroup, ResourceClaim
from podium.kube.printable import shortened
from podium.load.readings import LoadSource
from podium.run.activity import Activity, WriteFailures
from podium.run.claim_writer import ClaimWriter
from podium.run.http_extender import build_extenders
from podium.run.metrics import Metrics
from podium.run.pod_history import PodHistory
from podium.run.pod_status import GroupStatuses, KnownPods, PodStatuses
from podium.run.shadow import Shadow, ShadowWriter
from podium.run.writer import LiveWriter
from podium.serving.event_recorder import (
    WARNING,
    EventRecorder,
    binding_conditions_pending,
    failed_scheduling,
    scheduled,
    waiting_on_permit,
)
from podium.serving.log import LOG, log_failure

BURST = 16
"""Decisions in a row before the loop looks at anything else: about two milliseconds."""
LONGEST_BURST = 0.01
"""Seconds after which it does so anyway: where preemption or extenders take long, the lease must not wait for many."""
LONGEST_CONDITION = 32_768
"""Characters of a pod's condition: what a plugin or an extender gives as its reason may be of any length."""
MOST_BINDINGS = 64
"""Bindings under way at which deciding pauses; it goes on when half of them are done."""


@dataclass(frozen=True, kw_only=True)
class LiveParts:
    """What a live scheduler is built with, beside its configuration and plugins."""

    client: Client
    recorder: EventRecorder
    clock: Clock
    rng: random.Random
    load: LoadSource | None = None
    pod_outcomes: PodOutcomes | None = None
    metrics: Metrics | None = None
    shadow: Shadow | None = None
    history: PodHistory | None = None
    """Where what happens to pods is noted, for a dashboard."""


class LiveScheduler:
    """A scheduler with its informers, writes and outcomes on one API server; also the engine's listener."""

    def __init__(self, config: SchedulerConfig, registry: Registry, parts: LiveParts) -> None:
        client, clock, metrics, shadow = parts.client, parts.clock, parts.metrics, parts.shadow
        self._clock = clock
        self._recorder = parts.recorder
        self._tasks: dict[asyncio.Task[None], None] = {}  # in the order they began, unlike a set
        self._work = asyncio.Event()
        self._room = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._stopping = False
        failures = WriteFailures(clock, LOG.warning)
        pods = KnownPods(self._latest, self._learn)
        self.statuses = PodStatuses(client, clock, pods, failures)
        self.shadow = shadow
        self.history = parts.history
        self.activity = Activity()
        self.plugin_failures = FirstFailures(log_failure)
        self.writer = LiveWriter(
            client,
            clock,
            parts.rng,
            pods,
            self.statuses,
            parts.recorder,
            self._spawn,
            ClaimWriter(
                client,
                clock,
                self._learn_claim,
                self._learn,
                LOG.warning,
                created=_count_nothing if metrics is None else metrics.claims.created,
            ),
        )
        self.writer.bind_retries = config.rules.bind_retries
        self._groups = GroupStatuses(
            client, clock, self._latest_group, self._spawn, LOG.warning, self._version_of_groups
        )
        self.engine = Scheduler(
            config,
            registry,
            Driver(
                clock=clock,
                writer=self.writer if shadow is None else ShadowWriter(shadow),
                rng=parts.rng,
                launch=self._launch,
                load=parts.load,
                pod_outcomes=parts.pod_outcomes,
                report=LOG.warning,
                timer=UNTIMED if metrics is None else metrics.timer,
                on_failure=self.plugin_failures,
                extenders=build_extenders(
                    config,
                    self._text_of_pod,
                    self._text_of_node,
                    may_bind=shadow is None,
                    guard=lambda: None if client.guard is None else client.guard(),
                ),
            ),
            shadow or self,
            on_group_condition=self._groups.write if shadow is None else _write_nothing,
        )
        self._schedules = False
        if shadow is None:
            self.engine.waiting.on_wait = self._waits
            self.engine.device_waits.on_begin = self._waits_for_devices
            self.engine.problems.listener = self._object_is_wrong
        if self.history is not None:
            self.engine.queue.follow(self.history.moved)
        if metrics is not None:
            metrics.attach(self.engine, lambda: self.writer.binding)
            self.engine.device_waits.on_end = metrics.claims.waited
            metrics.counter(
                "podium_plugin_failures_total",
                "Exceptions and wrong answers of plugins; the first of each kind is in the log.",
                lambda: {labels: number for labels, number in self.plugin_failures.counts.items()},  # noqa: C416  (mypy tells them apart)
                ("plugin", "extension_point"),
            )
        if shadow is not None:
            shadow.attach(self.engine)
        self.informers = Informers(
            client,
            self.engine.intake,
            changed=self._work.set,
            follower=shadow,
            rng=parts.rng,
            report=LOG.warning,
            watched=WatchedKinds(
                custom=custom_kinds(self.engine.profiles.values()),
                resources=watched_kinds(self.engine.profiles.values()),
                keep_raw=bool(config.extenders),
            ),
        )
        if metrics is not None:
            metrics.follow(self.informers.by_kind.values())

    # What runs

    async def watch(self) -> None:
        """Keep the engine's view of the cluster fresh, until cancelled."""
        await self.informers.run()

    async def schedule(self) -> None:
        """Decide and bind, until `finish`; then only write what is still to be written, until cancelled.

        The informers must have synced."""
        self._schedules = True
        if self.shadow is None:
            for problem in self.engine.problems:
                self._object_is_wrong(problem)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.statuses.run())
            while not self._stopping:
                if self.writer.binding >= MOST_BINDINGS:
                    await self._until_room()
                self.engine.tick()
                if self._burst():
                    await asyncio.sleep(0)
                else:
                    await self._until_work()

    def _burst(self) -> bool:
        """Decide for some pods; whether there may be more of them."""
        now = asyncio.get_running_loop().time
        end = now() + LONGEST_BURST
        for _ in range(BURST):
            queued = self.engine.queue.pop()
            if queued is None:
                return False
            self._decide(queued)
            if now() >= end:
                break
        return True

    def _decide(self, queued: QueuedPod) -> None:
        try:
            if self.shadow is not None:
                self.shadow.preview(queued.pod)
            self.engine.schedule(queued)
        except Exception as error:  # even a mistake of ours must not stop the scheduler: the pod is tried again
            LOG.exception("deciding for pod %s failed", queued.pod.key)
            self.engine.abandon(queued, Status.error(f"internal error: {type(error).__name__}: {error}"))

    async def _until_room(self) -> None:
        """Wait until half of the bindings are done."""
        self._room.clear()
        await self._room.wait()

    async def _until_work(self) -> None:
        """Wait for a change in the cluster, or for time to bring a pod back."""
        self._work.clear()
        due = self.engine.next_timer()
        if due is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(0.0, due - self._clock.now()), self._work.set)
        try:
            await self._work.wait()
        finally:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    async def finish(self, seconds: float) -> None:
        """Decide no more; let what is under way end, and leave what takes longer: the API server has all of it."""
        self._stopping = True
        self._work.set()
        self._room.set()
        now = asyncio.get_running_loop().time
        end = now() + seconds
        while self._tasks and (left := end - now()) > 0:  # what ends may begin something else
            await asyncio.wait(self._tasks, timeout=left)
        for task in list(self._tasks):
            task.cancel()

    # Bindings and other things under way

    @property
    def under_way(self) -> int:
        """How many bindings and evictions have begun and not ended."""
        return len(self._tasks)

    def _launch(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._spawn(work)
        task.add_done_callback(self._bound)
        return task

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._ended)
        return task

    def _bound(self, _task: asyncio.Task[None]) -> None:
        if self.writer.binding <= MOST_BINDINGS // 2:
            self._room.set()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        self._work.set()  # a binding or an eviction that failed puts its pod back
        if not task.cancelled() and (error := task.exception()) is not None:
            LOG.error("a task failed", exc_info=error)

    # What the informers know

    def _latest(self, pod: Pod) -> Pod | None:
        return self.informers.latest(pod)

    def _version_of_groups(self) -> str:
        return self.informers.by_kind[PodGroup].resource.group_version

    def _latest_group(self, key: str) -> PodGroup | None:
        return self.engine.cluster.objects.pod_groups.get(key)

    def _learn(self, pod: bytes) -> Pod | None:
        found: Pod | None = self.informers.by_kind[Pod].learn(pod)
        return found

    def _learn_claim(self, claim: bytes) -> ResourceClaim | None:
        found: ResourceClaim | None = self.informers.by_kind[ResourceClaim].learn(claim)
        self._work.set()
        return found

    def _text_of_pod(self, key: str) -> bytes | None:
        return self.informers.by_kind[Pod].raw.get(key)

    def _text_of_node(self, name: str) -> bytes | None:
        return self.informers.by_kind[Node].raw.get(name)

    # Outcomes

    def scheduled(self, pod: Pod, node_name: str) -> None:
        self.activity.bound += 1
        LOG.debug("pod %s is bound to node %s", pod.key, node_name)
        self._recorder.record(*scheduled(pod, node_name))
        if self.history is not None:
            self.history.scheduled(pod, node_name)

    def _waits(self, waiting: WaitingPod) -> None:
        self._recorder.record(*waiting_on_permit(waiting))
        if self.history is not None:
            self.history.held_at_permit(waiting)

    def _waits_for_devices(self, pod: Pod, node_name: str) -> None:
        self._recorder.record(*binding_conditions_pending(pod, node_name))

    def _object_is_wrong(self, problem: ObjectProblem) -> None:
        """Write an event, unless another scheduler leads: that one writes it."""
        if self._schedules:
            regarding, reason, note = problem
            controller = next(iter(self.engine.profiles))
            self._recorder.record_on(regarding, None, WARNING, reason, "Scheduling", note, controller)

    def failed(self, pod: Pod, reason: str, message: str, nomination: Nomination | None) -> None:
        message = shortened(message, LONGEST_CONDITION)
        self._recorder.record(*failed_scheduling(pod, message))
        LOG.debug("pod %s: %s", pod.key, message)
        if reason:
            self.activity.attempt_failed(pod.key, reason == UNSCHEDULABLE, message)
            self.statuses.write(pod, ("False", reason, message), nomination)
            if self.history is not None:
                nominated = nomination.node_name if nomination is not None else ""
                self.history.attempt_failed(pod, reason, message, nominated or "")


def _write_nothing(_group: PodGroup, _condition: Condition) -> None:
    return None


def _count_nothing(*, success: bool) -> None:
    pass
