"""Tries the members of a PodGroup (scheduling.k8s.io) one after another, each with those before it in place.

A member that no node takes may get room by PostFilter; it then counts as placed on the node that is being freed. One
that Permit lets through makes the whole group schedulable. Everything is taken back at the end, in reverse, unless the
members that found a node are to be bound at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from podium.cluster import Rows
from podium.engine.decide import NO_NODES, NodeSearch, decide, make_room
from podium.engine.gangs.gang_attempt import Placer
from podium.engine.sampling import Sampling
from podium.framework.cycle import Cycle
from podium.framework.diagnosis import Diagnosis, Nomination, refused_by_one
from podium.framework.nominator import Nominator
from podium.framework.profile import ProfileRuntime
from podium.framework.queued import QueuedPod
from podium.framework.status import Code, PluginError, Status, Waits

UNSCHEDULABLE_GROUP: Final = "pod group is unschedulable"
WAITING_FOR_PREEMPTION: Final = "pod group is waiting for preemption to complete"
OTHER_FAILED: Final = "failed to schedule other pod from a pod group"
SKIPPED_POST_FILTERS: Final = "All PostFilter plugins are skipped"


@dataclass(slots=True)
class TriedMember:
    """What became of one member: a node with `waits` at Permit, or a `status` that says why not, or, where PostFilter
    makes room, both."""

    queued: QueuedPod
    cycle: Cycle
    node_name: str = ""
    waits: Waits = field(default_factory=Waits)
    status: Status | None = None
    nomination: Nomination | None = None
    diagnosis: Diagnosis | None = None

    @property
    def needs_preemption(self) -> bool:
        return bool(self.node_name) and self.status is not None

    @property
    def permit_message(self) -> str:
        return self.waits.message if self.waits else ""


@dataclass(slots=True)
class GroupResult:
    """What a trial of a group found; `status` None: it can be scheduled."""

    status: Status | None
    members: list[TriedMember] = field(default_factory=list)
    waiting_for_preemption: bool = False

    @property
    def code(self) -> Code:
        return Code.SUCCESS if self.status is None else self.status.code


class GroupAttempt:
    """One trial of a group on the live state, or on the rows of one placement of it."""

    def __init__(
        self,
        placer: Placer,
        runtime: ProfileRuntime,
        nominator: Nominator,
        sampling: Sampling,
        rows: Rows | None = None,
    ) -> None:
        self._placer = placer
        self._runtime = runtime
        self._nominator = nominator
        self._sampling = sampling
        self._rows = rows
        self._placed: list[TriedMember] = []

    def run(self, members: Sequence[QueuedPod], *, post_filters: bool = True) -> GroupResult:
        """Try all; those that have a node then stand on it until `take_back`."""
        result = GroupResult(Status.unschedulable(UNSCHEDULABLE_GROUP))
        preempting = False
        for queued in members:
            member = self._try(queued, post_filters)
            result.members.append(member)
            status = member.status
            if not member.node_name:
                assert status is not None
                if status.rejected:
                    continue
                result.status = Status.error(f"{OTHER_FAILED}: {status.message}")
                result.waiting_for_preemption = False
                break
            self._placed.append(member)
            preempting = preempting or member.needs_preemption
            if not member.waits:  # Permit is open: enough members have a node
                result.waiting_for_preemption = preempting
                result.status = (
                    Status.unschedulable(UNSCHEDULABLE_GROUP, WAITING_FOR_PREEMPTION) if preempting else None
                )
        return result

    def take_back(self) -> None:
        """Undo everything, last first; what the API says of nominations holds again."""
        while self._placed:
            self._undo(self._placed.pop())

    def _undo(self, member: TriedMember) -> None:
        self._placer.take_back(self._runtime, member.cycle, member.node_name)
        pod = member.queued.pod
        if pod.status.nominated_node_name:
            self._nominator.nominate(pod)

    def _try(self, queued: QueuedPod, post_filters: bool) -> TriedMember:
        cluster, runtime = self._placer.cluster, self._runtime
        member = TriedMember(queued, Cycle(queued.pod, cluster))
        if not len(cluster.order.rows):
            return _failed(member, Status.unresolvable(NO_NODES))
        try:
            found = self._search(member.cycle)
            if isinstance(found, int):
                member.node_name = cluster.names[found]
            else:
                self._make_room(member, found, post_filters)
        except PluginError as error:
            return _failed(member, Status.error(str(error)))
        if not member.node_name:
            return member
        waits = self._placer.place(runtime, member.cycle, member.node_name)
        if not isinstance(waits, Status):
            member.waits = waits
            return member
        self._undo(member)
        if not waits.rejected:
            return _failed(member, waits)
        diagnosis = refused_by_one(waits)
        return _failed(member, Status(waits.code, (diagnosis.message,), waits.plugin), diagnosis)

    def _search(self, cycle: Cycle) -> int | NodeSearch:
        if self._rows is None:
            return self._placer.search(self._runtime, cycle)
        cycle.placement = self._rows
        decision = decide(self._runtime, cycle, self._sampling)
        return decision.search if decision.row is None else decision.row

    def _make_room(self, member: TriedMember, search: NodeSearch, post_filters: bool) -> None:
        member.diagnosis = diagnosis = search.diagnosis()
        if post_filters:
            member.nomination = make_room(self._runtime, member.cycle, diagnosis)
        else:
            diagnosis.post_filter_message = SKIPPED_POST_FILTERS
        member.status = Status.unschedulable(diagnosis.message)
        member.node_name = "" if member.nomination is None else member.nomination.node_name


def _failed(member: TriedMember, status: Status, diagnosis: Diagnosis | None = None) -> TriedMember:
    member.node_name, member.status, member.nomination, member.diagnosis = "", status, Nomination(""), diagnosis
    return member
