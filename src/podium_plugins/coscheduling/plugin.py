"""Holds the pods of a PodGroup back until enough of them have a node (Coscheduling).

    queueSort   higher priority first; then the group that was created, or failed, earlier; then by name
    preFilter   enough members exist, none is gated, the group is not backing off, minResources are free
    filter      with a topology key: the nodes of one domain
    postFilter  a member that fits nowhere brings the waiting ones down, unless few are missing
    permit      waits until minMember have a node

Members that are in the queue together are placed in one go (`gang_of`, see `podium.engine.gangs`), so nothing is held
for a group that does not fit; the barrier at Permit is for members that come one by one. All messages are those of
scheduler-plugins.

Surprise: PostFilter adds "can not find pod group" to the message of every pod without a group, as it does there.

These events give members of a group another chance: a pod of the group got a node, and a PodGroup came or changed.
Beyond scheduler-plugins: for groups with minResources or a topology key also nodes that came and pods that went.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator
from typing import Any, Final

import msgspec
import numpy as np

from podium import (
    SKIP,
    Action,
    Clock,
    Cycle,
    DependsOn,
    Diagnosis,
    FieldError,
    FieldPath,
    Gang,
    GangCount,
    GangState,
    Handle,
    Hint,
    Interest,
    NodePart,
    Plugin,
    PostFilterResult,
    QueuedPod,
    Resource,
    Status,
    Verdict,
    Wait,
    WaitingPod,
)
from podium.cluster import Nodes
from podium.kube import POD_GROUP_LABEL, Pod
from podium_plugins.coscheduling.group_records import GroupRecord, GroupRecords, domains, resource_gap
from podium_plugins.coscheduling.pod_group import RESOURCE, GroupRules, group_key

NAME: Final = "Coscheduling"
REJECTED_IN_POST_FILTER: Final = "optimistic rejection in PostFilter"
REJECTED_IN_UNRESERVE: Final = "rejection in Unreserve"
NOT_FOUND: Final = Status.unschedulable("PodGroup not found")
NO_GROUP: Final = PostFilterResult(Status.unschedulable("can not find pod group"))
NO_MESSAGE: Final = PostFilterResult(Status.unschedulable())
USUAL_WAIT: Final = 60
PERMITTED_AT_LEAST: Final = 3.0
"""Seconds for which a group counts as having its minResources, where no waiting time is configured."""


class CoschedulingArgs(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """How long members wait for each other, and what happens when they cannot go."""

    permit_waiting_time_seconds: int = 60
    """How long a member is held at Permit, where its group does not say."""
    pod_group_backoff_seconds: int = 0
    """How long a rejected group is not tried; 0: it may be tried at once."""
    pod_group_reject_percentage: int = 10
    """While no more than so many percent of minMember are missing, one member that fits nowhere does not bring the
    others down."""

    def validate(self, path: FieldPath) -> Iterator[FieldError]:
        for name, value in (
            ("permitWaitingTimeSeconds", self.permit_waiting_time_seconds),
            ("podGroupBackoffSeconds", self.pod_group_backoff_seconds),
        ):
            if value < 0:
                yield FieldError.invalid(path.child(name), value, "must be greater than 0")
        percentage = self.pod_group_reject_percentage
        if not 0 <= percentage <= 100:
            yield FieldError.invalid(path.child("podGroupRejectPercentage"), percentage, "must be between 0 and 100")


class Coscheduling(Plugin):
    name = NAME
    trusted = True
    Args = CoschedulingArgs
    depends_on = DependsOn(node=NodePart.OBJECT, claims=False, kinds=())
    resources = (f"{RESOURCE}/v1alpha1",)
    writes = ()

    def __init__(self, args: CoschedulingArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self.args: CoschedulingArgs = args
        self._records = GroupRecords.of(handle.cluster, handle.problems)

    def interests(self) -> Iterable[Interest]:
        records, clock = self._records, self.handle.clock
        concerns = None if self.args.pod_group_backoff_seconds else WaitsForGroup()
        room = Action.ADD | Action.UPDATE_NODE_ALLOCATABLE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT
        return [
            Interest(Resource.POD, Action.ADD, pod_helps(records, clock), by_signature=True, concerns=concerns),
            Interest(RESOURCE, Action.ADD | Action.UPDATE, spec_changed, by_signature=True, concerns=concerns),
            Interest(Resource.NODE, room, made_room(records), by_signature=True),
            Interest(Resource.ASSIGNED_POD, Action.DELETE, made_room(records), by_signature=True),
        ]

    def observe(self, resource: str, before: Any, after: Any) -> None:
        """Follow the pods that other schedulers are to place: they are members, too."""
        if resource != Resource.POD:
            return
        if isinstance(before, Pod) and (after is None or before.uid != after.uid or before.labels != after.labels):
            self._records.set_elsewhere(before, None)
        if isinstance(after, Pod):
            ours = after.spec.scheduler_name == self.handle.scheduler_name
            self._records.set_elsewhere(after, None if ours or after.node_name or after.finished else after)

    def record(self, key: str) -> GroupRecord | None:
        """What is counted of a group ("namespace/name")."""
        return self._records.by_key(key)

    # The order of the queue

    def less(self, a: QueuedPod, b: QueuedPod) -> bool:
        return self.sort_key(a) < self.sort_key(b)

    def sort_key(self, queued: QueuedPod) -> tuple[int, float, str]:
        """It changes when the group fails; all members are put into the queue again then."""
        return -queued.pod.priority, self._time(queued), queued.key

    def _time(self, queued: QueuedPod) -> float:
        record = self._records.get(queued.pod)
        if record is not None and record.group is not None:
            if record.last_failed is not None:
                return record.last_failed
            if record.group.created is not None:
                return record.group.created
        return queued.timestamp if queued.initial_attempt is None else queued.initial_attempt

    # Whether the group may be tried

    def pre_filter(self, cycle: Cycle) -> Status | None:
        record = self._records.get(cycle.pod)
        if record is None or record.group is None:
            return SKIP
        objection = self._objection(cycle.pod, record, record.group)
        if objection:
            return Status.unresolvable(objection)
        return None if self._domain(record) is not None else SKIP

    def _objection(self, pod: Pod, record: GroupRecord, group: GroupRules) -> str:
        """Why no member may be tried now; "" where they may."""
        now, minimum, members = self.handle.clock.now(), group.min_member, record.members
        if now < record.backed_off_until:
            return f"podGroup {record.key} failed recently"
        if members < minimum:
            return (
                f"pre-filter pod {pod.name} cannot find enough sibling pods, current pods number: {members}, "
                f"minMember of group: {minimum}"
            )
        if record.gated > members - minimum:
            return f"pre-filter pod {pod.name} cannot proceed due to gated pods in the same PodGroup"
        ours = len(record.pending.keys() | record.placed.keys()) if record.elsewhere else members
        if ours < minimum:
            others = sorted({each.spec.scheduler_name for each in record.elsewhere.values()})
            return (
                f"PodGroup {record.key} reaches minMember {minimum} only with pods of other schedulers "
                f"({', '.join(others)}): give all its pods the same schedulerName"
            )
        if group.min_resources is not None and now >= record.permitted_until:
            gap = resource_gap(self.handle.cluster, record)
            if gap is not None:
                return f"resource gap: {gap}"
            record.permitted_until = now + (self.args.permit_waiting_time_seconds or PERMITTED_AT_LEAST)
        return ""

    def answer_key(self, pod: Pod) -> Hashable:
        if POD_GROUP_LABEL not in pod.labels:
            return ()
        record = self._records.get(pod)
        if record is None:
            return None
        now, group, changes = self.handle.clock.now(), record.group, (0, 0)
        if group is not None and group.min_resources is not None and now >= record.permitted_until:
            cluster = self.handle.cluster
            changes = cluster.node_changes.version, cluster.pod_changes.version
        return record.version, now < record.backed_off_until, self._domain(record), changes

    # One domain

    def gang_key(self, pod: Pod) -> str | None:
        return group_key(pod)

    def gang_of(self, pod: Pod) -> Gang | None:
        record = self._records.get(pod)
        if record is None or record.group is None:
            return None
        missing = record.group.min_member - len(record.placed)
        packed = bool(record.group.topology_key) and not record.placed
        if (missing <= 1 and not packed) or self._objection(pod, record, record.group):
            return None
        return self._gang(pod, record, record.group)

    def gang_state(self, pod: Pod) -> GangState | None:
        record = self._records.get(pod)
        if record is None or record.group is None:
            return None
        group, objection = record.group, self._objection(pod, record, record.group)
        gang = self._gang(pod, record, group)
        return GangState("PodGroup", group.min_member, record.members, len(record.placed), objection, gang)

    def _gang(self, pod: Pod, record: GroupRecord, group: GroupRules) -> Gang:
        name, missing = pod.spec.scheduler_name, group.min_member - len(record.placed)
        members = [
            each
            for uid, each in record.pending.items()
            if uid not in record.placed and each.spec.scheduler_name == name and not each.terminating
        ]
        members.sort(key=lambda each: (-each.priority, each.key))
        refusal = Status.unschedulable(REJECTED_IN_POST_FILTER).by(NAME)
        if not group.topology_key or record.placed or not members:
            return Gang(record.key, members, missing, refusal)
        cluster, spill = self.handle.cluster, group.topology_mode == "soft"
        facts = list({id(each): each for each in map(cluster.facts.of, members)}.values())
        order = domains(cluster, group.topology_key, facts, missing, spill=spill)
        return Gang(record.key, members, missing, refusal, order or ([] if spill else [""]), spill)

    def gangs(self) -> Iterable[GangCount]:
        for record in self._records:
            if record.group is not None and record.group.min_member and record.members:
                yield GangCount(record.key, record.group.min_member, record.members, len(record.placed))

    def confine(self, gang: Gang, domain: str | None) -> None:
        record = self._records.by_key(gang.key)
        if record is not None:
            record.domain = domain

    def _domain(self, record: GroupRecord) -> str | None:
        """The domain that members must go to: the one being tried, or that of the members that have a node."""
        group = record.group
        if group is None or not group.topology_key or record.domain is not None:
            return record.domain
        if group.topology_mode == "soft" or not record.placed:
            return None
        column = self.handle.cluster.labels.column(group.topology_key)
        return column.values[int(column.ids[next(iter(record.placed.values())).row])]

    def filter(self, cycle: Cycle, nodes: Nodes) -> Verdict | None:
        record = self._records.get(cycle.pod)
        domain = None if record is None else self._domain(record)
        if record is None or record.group is None or domain is None:
            return None
        key = record.group.topology_key
        column = self.handle.cluster.labels.column(key)
        number = column.id_of.get(domain, -1)
        return Verdict.reject(nodes.pick(column.ids) != np.int32(number), _outside(key, domain))

    # After the choice

    def post_filter(self, cycle: Cycle, diagnosis: Diagnosis) -> PostFilterResult:
        record = self._records.get(cycle.pod)
        if record is None or record.group is None:
            return NO_GROUP
        minimum, assigned = record.group.min_member, len(record.placed)
        if assigned >= minimum:
            return NO_MESSAGE
        if (minimum - assigned) / minimum <= self.args.pod_group_reject_percentage / 100:
            return NO_MESSAGE
        self._reject_waiting(record, REJECTED_IN_POST_FILTER)
        now, backoff = self.handle.clock.now(), self.args.pod_group_backoff_seconds
        if backoff and record.members >= minimum and now >= record.backed_off_until:
            record.backed_off_until = now + backoff
        self._failed(record)
        why = f"Pod {cycle.pod.name} is unschedulable even after PostFilter"
        return PostFilterResult(Status.unschedulable(f"PodGroup {record.key} gets rejected due to {why}"))

    def permit(self, cycle: Cycle, node_name: str) -> Status | Wait | None:
        if not group_key(cycle.pod):
            return None
        record = self._records.get(cycle.pod)
        if record is None or record.group is None:
            return NOT_FOUND
        assigned = len(record.placed) + (cycle.pod.uid not in record.placed)
        if assigned >= record.group.min_member:
            record.last_failed = None
            for waiting in self._waiting(record):
                waiting.allow(NAME)
            return None
        if assigned == 1:
            cycle.pods_to_activate |= {uid: pod for uid, pod in record.pending.items() if uid != cycle.pod.uid}
        return Wait(self._wait(record.group))

    def unreserve(self, cycle: Cycle, node_name: str) -> None:
        record = self._records.get(cycle.pod)
        if record is not None and record.group is not None:
            self._reject_waiting(record, REJECTED_IN_UNRESERVE)
            self._failed(record)

    def _wait(self, group: GroupRules) -> float:
        usual = self.args.permit_waiting_time_seconds
        if group.timeout is None:
            return usual or USUAL_WAIT
        return group.timeout or usual

    def _failed(self, record: GroupRecord) -> None:
        record.permitted_until = float("-inf")
        record.last_failed = self.handle.clock.now()

    def _reject_waiting(self, record: GroupRecord, message: str) -> None:
        for waiting in self._waiting(record):
            waiting.reject(NAME, message)

    def _waiting(self, record: GroupRecord) -> list[WaitingPod]:
        waiting = self.handle.waiting
        if not len(waiting):
            return []
        return [found for uid in record.placed if (found := waiting.get(uid)) is not None]


def _outside(key: str, domain: str) -> Status:
    if not domain:
        return Status.unresolvable(f"node(s) had no label {key}, which the pod group is packed by")
    return Status.unresolvable(f"node(s) were outside {key}={domain}, where the pod group is packed")


# Events that help


class WaitsForGroup:
    """Files waiting pods and events by the group they are about; a `Concerns`."""

    def of_pod(self, pod: Pod) -> Collection[Hashable]:
        return (group_key(pod),)

    def of_event(self, before: Any, after: Any) -> Collection[Hashable]:
        return (_group_of(before if after is None else after),)


def pod_helps(records: GroupRecords, clock: Clock) -> Hint:
    """A pod came: it is a mate with a node, or the group has backed off long enough."""

    def helps(pod: Pod, _before: Pod | None, after: Pod) -> bool:
        record = records.get(pod)
        if record is None:
            return False
        return record.key == group_key(after) or float("-inf") < record.backed_off_until <= clock.now()

    return helps


def spec_changed(pod: Pod, before: Any, after: Any) -> bool:
    """The pod's group came, or what scheduling reads of it changed."""
    if group_key(pod) != _group_of(after):
        return False
    return before is None or _read(before) != _read(after)


def made_room(records: GroupRecords) -> Hint:
    """A node came or changed, or a pod went: that may matter where more than single nodes is looked at."""

    def helps(pod: Pod, _before: Any, _after: Any) -> bool:
        record = records.get(pod)
        group = None if record is None else record.group
        return group is not None and (group.min_resources is not None or bool(group.topology_key))

    return helps


def _group_of(item: Any) -> str | None:
    if isinstance(item, Pod):
        return group_key(item)
    meta = item["metadata"]
    return f"{meta.get('namespace') or 'default'}/{meta['name']}"


def _read(item: Any) -> tuple[Any, Any]:
    return item.get("spec"), item["metadata"].get("annotations")
