"""Schedules the members of a PodGroup (scheduling.k8s.io) together, as kube-scheduler does with GenericWorkload on.

Popping one member takes all others that wait out of the queue. They are tried in order (priority, then who became ready
first); what then happens to each follows from the whole group:

    schedulable              members with a node are bound; the others fail, each for its own reason
    waiting for preemption   members keep their nodes as nominations until the victims are gone
    unschedulable            nothing is held
    error                    nothing is held; the member that failed has its own error, the others the group's

The condition PodGroupInitiallyScheduled of the PodGroup (in 1.36: PodGroupScheduled) says which it was. It never goes
back once it is True.

Also asks the preemption plugin to make room for a whole PodGroup, with the gate WorkloadAwarePreemption on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from podium.cluster.pod_groups import PodGroupStates
from podium.config.feature_gates import Gate
from podium.config.points import Point
from podium.engine.gangs.group_attempt import UNSCHEDULABLE_GROUP, GroupAttempt, GroupResult, TriedMember
from podium.engine.gangs.group_placements import try_group
from podium.framework.diagnosis import Nomination
from podium.framework.profile import ProfileRuntime
from podium.framework.protocols import PodGroupPostFilterPlugin
from podium.framework.queued import QueuedPod
from podium.framework.status import Code, Status
from podium.framework.timer import Timer
from podium.kube import Condition, Pod, PodGroup
from podium.kube.pod_group import pod_group_key
from podium.preemption.group_victims import Fits

if TYPE_CHECKING:
    from podium.cluster import Rows
    from podium.engine.scheduler import Scheduler


CLEAR: Final = Nomination("")

OnCondition = Callable[[PodGroup, Condition], None]


class PodGroupCycles:
    """The cycles of pod groups in one scheduler; `on_condition` is given what to write into a PodGroup's status."""

    def __init__(self, scheduler: Scheduler, timer: Timer, on_condition: OnCondition) -> None:
        self._scheduler = scheduler
        self._timer = timer
        self._on_condition = on_condition
        self._states = PodGroupStates.of(scheduler.cluster)

    def run(self, queued: QueuedPod) -> None:
        """Try the group of a popped pod."""
        key = pod_group_key(queued.pod)
        assert key is not None
        members = self._members(key, queued)
        runtime = self._runtime(members)
        if isinstance(runtime, Status):
            for member in members:
                self._scheduler.fail(member, runtime, CLEAR)
            return
        members = [member for member in members if not self._skipped(member)]
        if not members:
            return
        left = list(members)
        try:
            self._cycle(runtime, key, queued, members, left)
        except Exception:  # whatever it is, the other members go back to the queue
            for member in left:  # the driver puts back the popped one
                if member is not queued:
                    self._scheduler.abandon(member, Status.error("internal error"))
            raise

    def _members(self, key: str, queued: QueuedPod) -> list[QueuedPod]:
        """The popped pod and all mates that may be tried, now in flight, in the order in which they are tried."""
        state = self._states.get(key)
        waiting = [] if state is None else state.unscheduled
        mates = self._scheduler.queue.take_active(pod.key for pod in waiting if pod.uid != queued.pod.uid)
        for mate in mates:
            mate.began = queued.began
        return sorted((queued, *mates), key=lambda each: (-each.pod.priority, each.initial_attempt or 0.0))

    def _runtime(self, members: list[QueuedPod]) -> ProfileRuntime | Status:
        first = members[0].pod.spec.scheduler_name
        for member in members:
            name = member.pod.spec.scheduler_name
            if name != first:
                return Status.error(
                    "all pods in a single pod group should have the same .spec.schedulerName set, "
                    f'got: "{name}" and "{first}"'
                )
        return self._scheduler.profiles[first]

    def _skipped(self, member: QueuedPod) -> bool:
        if not self._scheduler.to_be_skipped(member.pod):
            return False
        self._scheduler.queue.done(member.pod.uid)
        return True

    def _cycle(
        self, runtime: ProfileRuntime, key: str, popped: QueuedPod, members: list[QueuedPod], left: list[QueuedPod]
    ) -> None:
        scheduler = self._scheduler

        def attempt_on(rows: Rows | None) -> GroupAttempt:
            return GroupAttempt(scheduler, runtime, scheduler.nominator, scheduler.sampling, rows)

        result, attempt = try_group(runtime, key, members, attempt_on)
        self._timer.group_decided(popped)
        if attempt is not None and result.status is not None:
            attempt.take_back()
            attempt = None
        if Gate.WORKLOAD_AWARE_PREEMPTION in runtime.handle.gates and result.code is Code.UNSCHEDULABLE:
            self._preempt(runtime, key, members, result, attempt_on)
        for number, member in enumerate(members):
            tried = result.members[number] if number < len(result.members) else None
            self._finish(runtime, member, tried, result, standing=attempt is not None)
            left.remove(member)
        self._timer.group_tried(popped, _result_of(result))
        self._write_condition(key, result, runtime.handle.rules.pod_group_condition)

    def _preempt(
        self,
        runtime: ProfileRuntime,
        key: str,
        members: list[QueuedPod],
        result: GroupResult,
        attempt_on: Callable[[Rows | None], GroupAttempt],
    ) -> None:
        """Look for victims of the whole group, and note in the result what came of it."""

        def fits() -> Status | None:
            trial, attempt = try_group(runtime, key, members, attempt_on, post_filters=False)
            if attempt is not None:
                attempt.take_back()
            return trial.status

        assert result.status is not None
        status = preempt_for_group(runtime, key, [member.pod for member in members], fits)
        if status is None:
            result.waiting_for_preemption = True
        elif status.code is Code.ERROR:
            result.status = status
        else:
            result.status = Status(Code.UNSCHEDULABLE, (*result.status.reasons, status.message))

    # What becomes of each member

    def _finish(
        self, runtime: ProfileRuntime, queued: QueuedPod, tried: TriedMember | None, result: GroupResult, standing: bool
    ) -> None:
        scheduler, status = self._scheduler, result.status
        if status is not None and status.code is Code.ERROR:
            own = None if tried is None else tried.status
            scheduler.fail(queued, own if own is not None and own.code is Code.ERROR else status, CLEAR)
        elif tried is None:
            assert status is not None
            scheduler.fail(queued, status, None)
        elif tried.status is None and status is None:
            self._bind(runtime, tried, standing)
        elif tried.status is None and result.waiting_for_preemption:
            assert status is not None
            scheduler.fail(queued, status, Nomination(tried.node_name))
        elif tried.status is None or (tried.needs_preemption and not result.waiting_for_preemption):
            scheduler.fail(queued, Status.unschedulable(UNSCHEDULABLE_GROUP, tried.permit_message), CLEAR)
        else:
            scheduler.fail(queued, tried.status, tried.nomination, tried.diagnosis)

    def _bind(self, runtime: ProfileRuntime, tried: TriedMember, standing: bool) -> None:
        """Bind a member that has a node. The gang's barrier is open: enough of its mates have one as well."""
        if not standing and not self._restore(runtime, tried):
            return
        tried.waits.pop(GANG_SCHEDULING, None)
        self._timer.decided(tried.queued)
        self._scheduler.start_binding(runtime, tried.cycle, tried.queued, tried.node_name, tried.waits)

    def _restore(self, runtime: ProfileRuntime, tried: TriedMember) -> bool:
        """Place a member on the node that was found for it before everything was taken back; whether it is there."""
        waits = self._scheduler.place(runtime, tried.cycle, tried.node_name)
        if isinstance(waits, Status):
            self._scheduler.take_back(runtime, tried.cycle, tried.node_name)
            self._scheduler.fail_on_node(tried.queued, waits)
            return False
        tried.waits = waits
        return True

    def _write_condition(self, key: str, result: GroupResult, name: str) -> None:
        group = self._scheduler.cluster.objects.pod_groups.get(key)
        if group is None:
            return
        status = result.status
        if status is None:
            state, reason, message = "True", "Scheduled", ""
        else:
            state, message = "False", status.message
            reason = "Unschedulable" if status.rejected else "SchedulerError"
        before = next((each for each in group.status.conditions if each.type == name), None)
        if before is not None and before.status == "True" != state:
            return
        wanted = (state, reason, message, group.metadata.generation)
        if before is None or (before.status, before.reason, before.message, before.observed_generation) != wanted:
            self._on_condition(
                group,
                Condition(
                    type=name,
                    status=state,
                    reason=reason,
                    message=message,
                    observed_generation=group.metadata.generation,
                ),
            )


GANG_SCHEDULING: Final = "GangScheduling"
"""The plugin whose barrier is open once a group may be bound."""


def _result_of(result: GroupResult) -> str:
    """How the attempt ended, in kube-scheduler's words for metrics."""
    if result.status is None:
        return "scheduled"
    if not result.status.rejected:
        return "error"
    return "waiting_on_preemption" if result.waiting_for_preemption else "unschedulable"


NO_PLUGIN: Final = Status.unschedulable(
    "default preemption plugin is not registered, workload aware preemption is disabled"
)
CONSTRAINED: Final = Status.unschedulable(
    "workload aware preemption is not supported for pod groups with scheduling constraints"
)


def preempt_for_group(runtime: ProfileRuntime, key: str, pods: Sequence[Pod], fits: Fits) -> Status | None:
    """Evict for the group ("namespace/name"); None where that is under way, or why it is not."""
    own_point = runtime.handle.rules.pod_group_post_filter_point
    point = Point.POD_GROUP_POST_FILTER if own_point else Point.POST_FILTER
    plugins = [each for each in runtime.at(point) if isinstance(each, PodGroupPostFilterPlugin)]
    group = runtime.handle.cluster.objects.pod_groups.get(key)
    if group is None:
        name = key.partition("/")[2]
        return Status.error(f'failed to get pod group object: podgroup.scheduling.k8s.io "{name}" not found')
    if group.topology_key is not None:
        return CONSTRAINED
    reasons: list[str] = []
    for plugin in plugins:
        status = plugin.pod_group_post_filter(group, pods, fits)
        if status is None or status.code is not Code.UNSCHEDULABLE:
            return status
        reasons += status.reasons
    return Status.unschedulable(*reasons) if reasons else NO_PLUGIN
