"""Schedules the members of a PodGroup (scheduling.k8s.io) together, as kube-scheduler does with GenericWorkload on.

From Kubernetes 1.37 on the queue holds one entity for each group; in 1.36, popping one member takes all others that
wait out of the queue. Members are tried in order; what then happens to each follows from the whole group:

    schedulable              members with a node are bound; the others fail, each for its own reason
    waiting for preemption   members keep their nodes as nominations until the victims are gone
    unschedulable            nothing is held
    error                    nothing is held; the member that failed has its own error, the others the group's

The condition PodGroupInitiallyScheduled of the PodGroup (in 1.36: PodGroupScheduled) says which it was. It never goes
back once it is True.

Also asks plugins to make room for a PodGroup that is unschedulable (in 1.36 with the gate WorkloadAwarePreemption).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from podium.cluster.pod_groups import PodGroupStates
from podium.config.feature_gates import Gate
from podium.config.points import Point
from podium.engine.gangs.gang_attempt import CLEAR, Member, Placer
from podium.engine.gangs.group_attempt import UNSCHEDULABLE_GROUP, GroupResult, GroupTrial, try_group
from podium.framework.diagnosis import Nomination
from podium.framework.gang import GroupFit, GroupRoom
from podium.framework.profile import ProfileRuntime
from podium.framework.protocols import PodGroupPostFilterPlugin
from podium.framework.queued import QueuedGroup, QueuedPod
from podium.framework.status import Code, Status, Waits
from podium.framework.timer import Timer
from podium.kube import Condition, Pod, PodGroup
from podium.kube.pod_group import pod_group_key

if TYPE_CHECKING:
    from podium.engine.scheduler import Scheduler

OnCondition = Callable[[PodGroup, Condition], None]

GANG_SCHEDULING: Final = "GangScheduling"
"""The plugin whose barrier is open once a group may be bound."""
NO_PLUGIN: Final = Status.unschedulable(
    "default preemption plugin is not registered, workload aware preemption is disabled"
)
CONSTRAINED: Final = Status.unschedulable(
    "workload aware preemption is not supported for pod groups with scheduling constraints"
)


class PodGroupCycles:
    """The cycles of pod groups in one scheduler; `on_condition` is given what to write into a PodGroup's status."""

    def __init__(self, scheduler: Scheduler, timer: Timer, on_condition: OnCondition) -> None:
        self._scheduler = scheduler
        self._timer = timer
        self._on_condition = on_condition
        self._states = PodGroupStates.of(scheduler.cluster)
        self._queued = scheduler.rules.pod_groups_are_queued

    def run(self, popped: QueuedPod) -> None:
        """Try the group that was popped, or whose member was."""
        key = popped.group.key if isinstance(popped, QueuedGroup) else pod_group_key(popped.pod)
        assert key is not None
        members = self._members(key, popped)
        left = list(members)
        status: Status | None = Status.error("internal error")
        try:
            status = self._try(key, popped, members, left)
        except Exception:  # whatever it is, the other members go back to the queue
            for member in left:  # the driver puts back the popped one
                if member is not popped:
                    self._scheduler.abandon(member, Status.error("internal error"))
            raise
        finally:
            if isinstance(popped, QueuedGroup):
                self._scheduler.queue.group_tried(popped, status)

    def _try(self, key: str, popped: QueuedPod, members: list[QueuedPod], left: list[QueuedPod]) -> Status | None:
        """None: the group is scheduled; `left` loses each member that has been dealt with."""
        wrong = self._objection(key, members)
        if wrong is not None:
            for member in members:
                left.remove(member)
                self._scheduler.fail(member, wrong, CLEAR)
            if self._queued:
                self._write_condition(key, GroupResult(wrong))
            return wrong
        for member in members:
            if self._skipped(member):
                left.remove(member)
        members = list(left)
        if not members:
            return None
        runtime = self._scheduler.profiles[members[0].pod.spec.scheduler_name]
        return self._cycle(runtime, key, popped, members, left)

    def _members(self, key: str, popped: QueuedPod) -> list[QueuedPod]:
        """All members that are to be tried, now in flight, in order."""
        if isinstance(popped, QueuedGroup):
            members = list(popped.members)
        else:
            state = self._states.get(key)
            waiting = [] if state is None else state.unscheduled
            mates = self._scheduler.queue.take_active(pod.key for pod in waiting if pod.uid != popped.pod.uid)
            members = sorted((popped, *mates), key=lambda each: (-each.pod.priority, each.initial_attempt or 0.0))
        for member in members:
            member.began = popped.began
        return members

    def _objection(self, key: str, members: Sequence[QueuedPod]) -> Status | None:
        """Why these pods cannot be one group."""
        pods = [member.pod for member in members]
        group = self._scheduler.cluster.objects.pod_groups.get(key)
        state = self._states.get(key)
        if self._queued and state is not None:
            pods += [placed.pod for placed in state.placed.values()]
        first = pods[0]
        whole = "all pods in a single pod group should have the same"
        for pod in pods:
            name, expected = pod.spec.scheduler_name, first.spec.scheduler_name
            if name != expected:
                return Status.error(f'{whole} .spec.schedulerName set, got: "{name}" and "{expected}"')
            if not self._queued or group is None:
                continue
            if pod.priority != group.priority:
                return Status.error(
                    f"{whole} priority as the pod group's priority, got {pod.priority} and {group.priority}"
                )
            policy, other = _policy(pod), _policy(first)
            if policy != other:
                return Status.error(f"{whole} preemption policy, got {policy} and {other}")
        return None

    def _skipped(self, member: QueuedPod) -> bool:
        if not self._scheduler.to_be_skipped(member.pod):
            return False
        self._scheduler.queue.done(member.pod.uid)
        return True

    def _cycle(
        self, runtime: ProfileRuntime, key: str, popped: QueuedPod, members: list[QueuedPod], left: list[QueuedPod]
    ) -> Status | None:
        result, attempt = try_group(self._scheduler, runtime, key, members)
        self._timer.group_decided(popped)
        found = result.status
        if attempt is not None and result.status is not None:
            attempt.take_back()
            attempt = None
        look_for_room(self._scheduler, runtime, key, members, result)
        untried = found if self._queued else result.status
        for number, member in enumerate(members):
            tried = result.members[number] if number < len(result.members) else None
            self._finish(runtime, member, tried, result, untried, standing=attempt is not None)
            left.remove(member)
        self._timer.group_tried(popped, _result_of(result))
        self._write_condition(key, result)
        return found

    # What becomes of each member

    def _finish(
        self,
        runtime: ProfileRuntime,
        queued: QueuedPod,
        tried: Member | None,
        result: GroupResult,
        untried: Status | None,
        *,
        standing: bool,
    ) -> None:
        scheduler, status = self._scheduler, result.status
        node = result.nodes.get(queued.pod.uid) if result.waiting_for_preemption else None
        nomination = None if node is None else Nomination(node)
        if status is not None and status.code is Code.ERROR:
            own = None if tried is None else tried.status
            scheduler.fail(queued, own if own is not None and own.code is Code.ERROR else status, CLEAR)
        elif tried is None:
            assert untried is not None
            scheduler.fail(queued, untried, nomination)
        elif tried.status is None and status is None:
            self._bind(runtime, tried, standing)
        elif tried.status is None and result.waiting_for_preemption:
            assert status is not None
            scheduler.fail(queued, status, nomination)
        elif tried.status is None or (tried.node_name and not result.waiting_for_preemption):
            scheduler.fail(queued, with_its_group(runtime, tried, result), CLEAR)
        else:
            scheduler.fail(queued, tried.status, nomination or tried.nomination, tried.diagnosis)

    def _bind(self, runtime: ProfileRuntime, tried: Member, standing: bool) -> None:
        """Bind a member that has a node. The gang's barrier is open: enough of its mates have one as well."""
        scheduler = self._scheduler
        waits: Status | Waits = tried.waits
        if not standing:
            waits = scheduler.place(runtime, tried.cycle, tried.node_name)
        elif self._queued:
            waits = scheduler.permit(runtime, tried.cycle, tried.node_name)
        if isinstance(waits, Status):
            scheduler.take_back(runtime, tried.cycle, tried.node_name)
            scheduler.fail_on_node(tried.queued, waits)
            return
        waits = Waits(waits)
        waits.pop(GANG_SCHEDULING, None)
        self._timer.decided(tried.queued)
        scheduler.start_binding(runtime, tried.cycle, tried.queued, tried.node_name, waits)

    def _write_condition(self, key: str, result: GroupResult) -> None:
        group = self._scheduler.cluster.objects.pod_groups.get(key)
        if group is None:
            return
        name, status = self._scheduler.rules.pod_group_condition, result.status
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


def look_for_room(
    placer: Placer, runtime: ProfileRuntime, key: str, members: Sequence[QueuedPod], result: GroupResult
) -> None:
    """Look for victims of a whole group that is unschedulable, and note in the result what came of it."""
    queued = runtime.handle.rules.pod_groups_are_queued
    status = result.status
    if status is None or status.code is not Code.UNSCHEDULABLE:
        return
    if not queued and Gate.WORKLOAD_AWARE_PREEMPTION not in runtime.handle.gates:
        return
    failed = [
        (each.cycle, each.diagnosis)
        for each in result.members
        if each.search is not None and each.diagnosis is not None
    ]
    trial = GroupTrial(placer, runtime, key, members, failed)
    room = (_room_for if queued else preempt_for_group)(runtime, key, [member.pod for member in members], trial)
    if room.status is None:
        result.waiting_for_preemption = True
        result.nodes |= room.nodes
    if room.status is not None and room.status.code is Code.ERROR:
        result.status = room.status
    elif room.status is not None or queued:
        message = room.message if room.status is None else room.status.message
        result.status = Status(Code.UNSCHEDULABLE, (*status.reasons, message))


def with_its_group(runtime: ProfileRuntime, tried: Member, result: GroupResult) -> Status:
    """Why a member that could have a node fails: its group does."""
    assert result.status is not None
    queued = runtime.handle.rules.pod_groups_are_queued
    why = result.status.message if queued else tried.waits.message if tried.waits else ""
    return Status.unschedulable(UNSCHEDULABLE_GROUP, why)


def _policy(pod: Pod) -> str:
    return pod.spec.preemption_policy or "PreemptLowerPriority"


def _result_of(result: GroupResult) -> str:
    """How the attempt ended, in kube-scheduler's words for metrics."""
    if result.status is None:
        return "scheduled"
    if not result.status.rejected:
        return "error"
    return "waiting_on_preemption" if result.waiting_for_preemption else "unschedulable"


def _room_for(runtime: ProfileRuntime, key: str, pods: Sequence[Pod], fit: GroupFit) -> GroupRoom:
    """Ask the podGroupPostFilter plugins, until one makes room or knows that there can be none."""
    group = runtime.handle.cluster.objects.pod_groups.get(key)
    assert group is not None, "a group without its object is in no queue"
    reasons: list[str] = []
    for plugin in _plugins(runtime, Point.POD_GROUP_POST_FILTER):
        room = plugin.pod_group_post_filter(group, pods, fit)
        if room.status is None or room.status.code is Code.UNRESOLVABLE:
            return room
        if room.status.code is not Code.UNSCHEDULABLE:
            name, why = getattr(plugin, "name", ""), room.status.message
            return GroupRoom(Status.error(f'error in "{name}" PodGroupPostFilter plugins: {why}'))
        reasons += room.status.reasons
    return GroupRoom(Status.unschedulable(*reasons))


def preempt_for_group(runtime: ProfileRuntime, key: str, pods: Sequence[Pod], fit: GroupFit) -> GroupRoom:
    """The same by the rules of 1.36, where postFilter plugins do it."""
    group = runtime.handle.cluster.objects.pod_groups.get(key)
    if group is None:
        name = key.partition("/")[2]
        return GroupRoom(Status.error(f'failed to get pod group object: podgroup.scheduling.k8s.io "{name}" not found'))
    if group.topology_key is not None:
        return GroupRoom(CONSTRAINED)
    reasons: list[str] = []
    for plugin in _plugins(runtime, Point.POST_FILTER):
        room = plugin.pod_group_post_filter(group, pods, fit)
        if room.status is None or room.status.code is not Code.UNSCHEDULABLE:
            return room
        reasons += room.status.reasons
    return GroupRoom(Status.unschedulable(*reasons) if reasons else NO_PLUGIN)


def _plugins(runtime: ProfileRuntime, point: Point) -> Iterable[PodGroupPostFilterPlugin]:
    return [each for each in runtime.at(point) if isinstance(each, PodGroupPostFilterPlugin)]
