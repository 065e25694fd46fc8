"""Schedules pods: takes one from the queue, decides, places it in memory, hands it over to be bound.

Everything that takes time or leaves the process is given from outside: the clock, the writer, the listener that hears
of outcomes, the timer. The same object therefore schedules a live cluster, a simulated one and a test.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Protocol

from podium.cluster import Cluster
from podium.config.feature_gates import Gate
from podium.config.points import Point
from podium.config.registry import Registry
from podium.config.resolved import SchedulerConfig
from podium.engine.answer_cache.store import AnswerCache
from podium.engine.batching import Batch
from podium.engine.binding import BindingSteps, PodBinding, run_at_once
from podium.engine.decide import NO_NODES, NodeSearch, decide, make_room
from podium.engine.gangs.gang_cycle import GangCycles
from podium.engine.gangs.group_cycle import OnCondition, PodGroupCycles
from podium.engine.intake import Intake, on_node
from podium.engine.queue.queue_sort import unfailing
from podium.engine.queue.queueing_hints import build_hints
from podium.engine.queue.scheduling_queue import SchedulingQueue
from podium.engine.queue.sub_queues import QueuePlugins, QueueSettings
from podium.engine.sampling import Sampling
from podium.framework.cycle import Cycle
from podium.framework.diagnosis import Diagnosis, Nomination, VerdictError, refused_by_one
from podium.framework.events import Action, Event, Resource
from podium.framework.extender import interested
from podium.framework.handle import Driver, EngineState, Handle
from podium.framework.nominator import Nominator
from podium.framework.object_problems import ObjectProblems
from podium.framework.plugin_failures import PluginFailure
from podium.framework.profile import ProfileRuntime
from podium.framework.queued import QueuedGroup, QueuedPod
from podium.framework.status import NO_WAITS, PluginError, Status, Waits, code_of
from podium.framework.timer import UNTIMED, Step
from podium.framework.waiting import DeviceWaits, WaitingPod, WaitingPods
from podium.kube import Pod

UNSCHEDULABLE = "Unschedulable"
SCHEDULER_ERROR = "SchedulerError"
CLEAR = Nomination("")
ASSIGNED_POD_DELETE = Event(Resource.ASSIGNED_POD, Action.DELETE)


class Listener(Protocol):
    """Hears of outcomes: a driver writes conditions and events, a test remembers."""

    def scheduled(self, pod: Pod, node_name: str) -> None: ...

    def failed(self, pod: Pod, reason: str, message: str, nomination: Nomination | None) -> None: ...


class Scheduler:
    """Cluster, queue and profiles, driven by events (`intake`) and by `schedule_one`."""

    def __init__(
        self,
        config: SchedulerConfig,
        registry: Registry,
        driver: Driver,
        listener: Listener,
        *,
        parity: bool = False,
        on_group_condition: OnCondition = lambda _group, _condition: None,
    ) -> None:
        self.rules = config.rules
        report, clock, timer = driver.report, driver.clock, driver.timer
        on_failure = driver.on_failure or (lambda failure: report(str(failure)))
        launch = driver.launch or run_at_once
        driver = replace(driver, on_failure=on_failure, launch=launch)
        self.cluster = Cluster(resize_by_sums=config.rules.resize_by_sums)
        self.nominator = Nominator()
        self.waiting = WaitingPods()
        self.device_waits = DeviceWaits()
        self.problems = ObjectProblems(report)
        self.sampling = Sampling(config.percentage_of_nodes_to_score, parity)
        self._clock = clock
        self._listener = listener
        self._launch = launch
        self._report = report
        self._timer = timer
        self._extenders = driver.extenders
        state = EngineState(
            cluster=self.cluster,
            nominator=self.nominator,
            waiting=self.waiting,
            device_waits=self.device_waits,
            problems=self.problems,
            activate=self._wake,
            resort=self._resort,
            wake_at=self._wake_at,
        )
        self.answer_cache = AnswerCache()
        self.profiles: dict[str, ProfileRuntime] = {}
        for profile in config.profiles:
            handle = Handle(driver, state, rules=config.rules)
            self.profiles[profile.scheduler_name] = ProfileRuntime(profile, registry, handle)
        asks_extenders = bool(driver.extenders or config.extenders)
        batches = {name: Batch(runtime, clock, extenders=asks_extenders) for name, runtime in self.profiles.items()}
        self.batches = {name: batch for name, batch in batches.items() if batch.signs or timer is not UNTIMED}
        """By profile; where nothing is measured, those that never batch have none."""
        self._steps = {name: BindingSteps(runtime) for name, runtime in self.profiles.items()}
        self._timed_steps = {
            name: BindingSteps(runtime, each_plugin_timed=True) for name, runtime in self.profiles.items()
        }
        self._gangs = GangCycles(self, timer)
        pod_groups = Gate.GENERIC_WORKLOAD in config.gates
        queued_groups = pod_groups and config.rules.pod_groups_are_queued
        self._pod_groups = PodGroupCycles(self, timer, on_group_condition) if pod_groups else None
        queue_sort = next(iter(self.profiles.values())).at(Point.QUEUE_SORT)[0]
        self.nominator.outranks = getattr(queue_sort, "outranks", None)
        sorter = unfailing(queue_sort, report)
        self.queue = SchedulingQueue(
            sorter,
            clock,
            self.nominator,
            QueuePlugins(
                pre_enqueue={name: runtime.run_pre_enqueue for name, runtime in self.profiles.items()},
                hints={
                    name: build_hints(runtime.plugins.values(), config.rules, extenders=asks_extenders)
                    for name, runtime in self.profiles.items()
                },
                on_failure=on_failure,
                report=report,
            ),
            QueueSettings(
                initial_backoff=config.pod_initial_backoff_seconds,
                max_backoff=config.pod_max_backoff_seconds,
                max_in_unschedulable=config.pod_max_in_unschedulable_seconds,
                members_back_off=pod_groups and not queued_groups,
                nominates_gated=config.rules.gated_nominations_count,
                names_own_changes=config.rules.own_changes_have_a_name,
            ),
            timer=timer,
            queued_groups=self.cluster.objects.pod_groups if queued_groups else None,
        )
        self.intake = Intake(self, timer, config.gates)

    # One pod

    def schedule_one(self) -> QueuedPod | None:
        """Decide for the next pod; None when the queue has nothing ready."""
        queued = self.queue.pop()
        if queued is not None:
            self.schedule(queued)
        return queued

    def schedule(self, queued: QueuedPod) -> None:
        pod = queued.pod
        if self._pod_groups is not None and pod.spec.scheduling_group is not None:
            self._timer.time_attempt(self._run_group, queued, self._pod_groups)
            return
        runtime = self.profiles.get(pod.spec.scheduler_name)
        if runtime is None or self.to_be_skipped(pod):
            self.queue.done(pod.uid)
            return
        gang = self._gangs.find(runtime, queued) if runtime.gang_plugins else None
        if gang is None:
            self._timer.time_attempt(self._try, queued, runtime)
        else:
            self._timer.time_attempt(self._gangs.run, queued, gang)

    def _try(self, queued: QueuedPod, runtime: ProfileRuntime) -> None:
        cycle = Cycle(queued.pod, self.cluster)
        try:
            row = self._choose(runtime, cycle, queued)
        except PluginError as error:
            if isinstance(error, VerdictError):
                runtime.handle.on_failure(PluginFailure(error.plugin, Step.FILTER, queued.pod.key, "", error))
            self.answer_cache.drop(runtime, cycle)  # its notes may be what was wrong
            self.fail(queued, Status.error(str(error)), CLEAR)
            return
        if row is not None:
            self._timer.decided(queued)
            self._place_pod(runtime, cycle, queued, self.cluster.names[row])

    @staticmethod
    def _run_group(queued: QueuedPod, groups: PodGroupCycles) -> None:
        groups.run(queued)

    def to_be_skipped(self, pod: Pod) -> bool:
        """Whether the pod is going, or is placed already."""
        if pod.terminating:
            self._listener.failed(pod, "", f"skip schedule deleting pod: {pod.key}", None)
            return True
        placed = self.cluster.pods.get(pod.uid)
        return placed is not None and placed.assumed

    def _choose(self, runtime: ProfileRuntime, cycle: Cycle, queued: QueuedPod) -> int | None:
        """The row of the best node; None when there is none, and the pod has been dealt with."""
        if not len(self.cluster.order.rows):
            self.fail(queued, Status.unresolvable(NO_NODES), CLEAR)
            return None
        found = self.search(runtime, cycle, self.batches.get(runtime.name))
        if isinstance(found, int):
            return found
        diagnosis = found.diagnosis()
        nomination = make_room(runtime, cycle, diagnosis)
        self.fail(queued, Status.unschedulable(diagnosis.message), nomination, diagnosis)
        return None

    def search(self, runtime: ProfileRuntime, cycle: Cycle, batch: Batch | None = None) -> int | NodeSearch:
        """The row of the best node, or why there is none; the `batch` of pods that come one by one may know one."""
        number = self.queue.cycles
        if batch is not None:
            cycle.hinted_node = batch.hint(cycle, number)
        known = None
        if not cycle.hinted_node and (not self._extenders or not interested(self._extenders, cycle.pod)):
            known = self.answer_cache.decide(runtime, cycle, self.sampling)
        if known is not None:
            if batch is not None and isinstance(known, int):
                last = self.answer_cache.last
                assert last is not None
                batch.store(cycle, number, known, last.feasible, last.totals)
            return known
        cycle.forget_notes()
        decision = decide(runtime, cycle, self.sampling)
        if decision.row is None:
            return decision.search
        self.answer_cache.decided_without(runtime, cycle)
        if batch is not None:
            batch.store(cycle, number, decision.row, len(decision.search.feasible), decision.totals)
        return decision.row

    def _place_pod(self, runtime: ProfileRuntime, cycle: Cycle, queued: QueuedPod, node_name: str) -> None:
        """Assume, reserve, ask for permission, and start binding (at once, or when permission comes)."""
        waits = self.place(runtime, cycle, node_name)
        if isinstance(waits, Status):
            self.take_back(runtime, cycle, node_name)
            self.fail_on_node(queued, waits)
        else:
            self.start_binding(runtime, cycle, queued, node_name, waits)

    def place(self, runtime: ProfileRuntime, cycle: Cycle, node_name: str, *, permit: bool = True) -> Status | Waits:
        """Assume, reserve and ask for permission: how long plugins want the pod held, or why it may not be there."""
        self.cluster.assume(cycle.pod, node_name, cycle.facts)
        self.nominator.remove(cycle.pod.uid)
        try:
            refusal = runtime.run_reserve(cycle, node_name)
        except PluginError as error:
            return Status.error(str(error))
        if refusal is not None:
            return refusal
        return self.permit(runtime, cycle, node_name) if permit else NO_WAITS

    def permit(self, runtime: ProfileRuntime, cycle: Cycle, node_name: str) -> Status | Waits:
        """Ask for permission to bind a pod that stands on its node."""
        try:
            return runtime.run_permit(cycle, node_name)
        except PluginError as error:
            return Status.error(str(error))

    def start_binding(
        self, runtime: ProfileRuntime, cycle: Cycle, queued: QueuedPod, node_name: str, waits: dict[str, float]
    ) -> None:
        """Bind a placed pod, at once or when the plugins that hold it let go."""
        pod = queued.pod
        if cycle.pods_to_activate:
            self.activate(cycle)
        steps = (self._timed_steps if runtime.timer.sampled else self._steps)[runtime.name]
        binding = PodBinding(self, steps, cycle, queued, node_name)
        if not waits:
            binding.task = self._launch(binding.run())
            return
        waiting = self.waiting.add(pod, node_name, waits, self._clock.now())
        waiting.on_settled = lambda: self._after_permit(binding, waiting)
        binding.task = self._launch(binding.get_ready(waiting))

    def _after_permit(self, binding: PodBinding, waiting: WaitingPod) -> None:
        self._timer.waited(code_of(waiting.outcome), self._clock.now() - waiting.since)
        if binding.ready:  # otherwise it goes on by itself once it is
            binding.task = self._launch(binding.run_after(waiting))

    def take_back(self, runtime: ProfileRuntime, cycle: Cycle, node_name: str) -> None:
        """Undo `place`."""
        runtime.run_unreserve(cycle, node_name)
        self._forget(cycle.pod.uid)

    def fail_on_node(self, queued: QueuedPod, status: Status) -> None:
        """Put a pod back that a plugin refused on the node chosen for it."""
        if status.rejected:
            diagnosis = refused_by_one(status)
            self.fail(queued, Status(status.code, (diagnosis.message,), status.plugin), CLEAR, diagnosis)
        else:
            self.fail(queued, status, CLEAR)

    def _forget(self, uid: str) -> bool:
        """Take back a placement; False when the pod turned out to be bound, which stands."""
        placed = self.cluster.pods.get(uid)
        if placed is not None and not placed.assumed:
            return False
        self.cluster.forget(uid)
        return True

    # After binding

    def bound(self, queued: QueuedPod, node_name: str) -> None:
        self._timer.scheduled(queued)
        self._listener.scheduled(queued.pod, node_name)

    def not_bound(
        self,
        runtime: ProfileRuntime,
        cycle: Cycle,
        queued: QueuedPod,
        node_name: str,
        status: Status,
        *,
        at_permit: bool = False,
    ) -> None:
        """Undo a placement whose binding failed; others may use the room, but a rejected pod is not woken by it.

        Only the plugins that kept the pod at Permit can be waited for: after that, time alone brings it back.
        """
        pod = queued.pod
        runtime.run_unreserve(cycle, node_name)
        gone = self._forget(pod.uid)
        freed = on_node(pod, node_name)
        if gone and not status.rejected:
            self.queue.on_event(ASSIGNED_POD_DELETE, freed, None)
        diagnosis = None
        if at_permit:
            diagnosis = refused_by_one(status)
            diagnosis.unschedulable_plugins, diagnosis.pending_plugins = {status.plugin}, set()
            status = Status(status.code, (diagnosis.message,), status.plugin)
        self.fail(queued, status, CLEAR, diagnosis)
        if gone and status.rejected:
            self.queue.on_event(ASSIGNED_POD_DELETE, freed, None, precheck=lambda other: other.uid != pod.uid)

    def fail(
        self,
        queued: QueuedPod,
        status: Status,
        nomination: Nomination | None,
        diagnosis: Diagnosis | None = None,
    ) -> None:
        """Put the pod back to be tried again, note its nomination, and say why it failed."""
        self._timer.failed(queued, rejected=status.rejected)
        pod = queued.pod
        queued.unschedulable_plugins = set(diagnosis.unschedulable_plugins) if diagnosis else set()
        queued.pending_plugins = set(diagnosis.pending_plugins) if diagnosis else set()
        latest = self.cluster.objects.pending_pods.get(pod.key)
        if latest is None:
            self.queue.done(pod.uid)
        elif latest.uid != pod.uid:
            self.queue.done(pod.uid)
            return
        else:
            queued.pod = latest
            self.queue.add_unschedulable(queued)
            self.nominator.nominate(latest, None if nomination is None else nomination.node_name)
        reason = UNSCHEDULABLE if status.rejected else SCHEDULER_ERROR
        self._listener.failed(queued.pod, reason, status.message, nomination)

    def abandon(self, queued: QueuedPod, status: Status) -> None:
        """Put a pod back whose cycle broke off halfway, for a reason that lies in the scheduler itself.

        The members of a pod group are back by then.
        """
        if isinstance(queued, QueuedGroup):
            return
        placed = self.cluster.pods.get(queued.pod.uid)
        if placed is not None and placed.assumed:
            self.cluster.forget(queued.pod.uid)
        self.fail(queued, status, None)

    def _wake(self, pods: Iterable[Pod]) -> None:
        self.queue.activate(pods)

    def _resort(self, pods: Iterable[Pod]) -> None:
        self.queue.resort(pods)

    def _wake_at(self, pod: Pod, when: float) -> None:
        self.queue.wake_at(pod, when)

    def activate(self, cycle: Cycle) -> None:
        """Wake the pods that plugins asked for during the cycle."""
        self.queue.activate(list(cycle.pods_to_activate.values()))
        cycle.pods_to_activate = {}

    def tick(self) -> None:
        """What time alone brings about: expired waits, finished backoffs, pods parked too long."""
        self.waiting.expire(self._clock.now())
        self.queue.tick()

    def next_timer(self) -> float | None:
        """When `tick` will have something to do, as things are; None when nothing waits for time."""
        times = [waiting.deadline for waiting in self.waiting if not waiting.settled]
        due = self.queue.next_timer()
        return min(times if due is None else [*times, due], default=None)

    def load(self, objects: Iterable[Any]) -> None:
        """Take in many objects at once, as a first list from the API server."""
        for each in objects:
            self.intake.set(each)
