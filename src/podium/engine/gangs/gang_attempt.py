"""Places the members of a gang one after another, each with those before it in place, and takes them back.

Members are placed on the live state: assumed, reserved and, where asked, permitted like any pod, so that every plugin
sees them. What was placed is taken back in reverse order, which leaves the state exactly as it was. How many members
are enough, and what is done for one that no node takes, the policies say: `place_gang` and `gang_cycle` for gangs of
plugins, `group_attempt` for PodGroups of scheduling.k8s.io.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from podium.cluster import Cluster, Rows
from podium.engine.decide import NO_NODES, NodeSearch, decide, make_room
from podium.engine.sampling import Sampling
from podium.framework.cycle import Cycle
from podium.framework.diagnosis import Diagnosis, Nomination, refused_by_one
from podium.framework.gang import Gang, GangPlugin
from podium.framework.profile import ProfileRuntime
from podium.framework.queued import QueuedPod
from podium.framework.status import PluginError, Status, Waits

CLEAR: Final = Nomination("")


class Placer(Protocol):
    """Decides for one pod, places it, and takes it back: the scheduler does, and whoever explains."""

    cluster: Cluster
    sampling: Sampling

    def search(self, runtime: ProfileRuntime, cycle: Cycle) -> int | NodeSearch: ...

    def place(
        self, runtime: ProfileRuntime, cycle: Cycle, node_name: str, *, permit: bool = True
    ) -> Status | Waits: ...

    def take_back(self, runtime: ProfileRuntime, cycle: Cycle, node_name: str) -> None: ...


@dataclass(slots=True)
class Member:
    """What became of one member: a node with `waits` at Permit, or why there is none; where room is made, both."""

    queued: QueuedPod
    cycle: Cycle
    node_name: str = ""
    waits: Waits = field(default_factory=Waits)
    search: NodeSearch | None = None
    """What filters found, where no node takes it."""
    status: Status | None = None
    nomination: Nomination | None = None
    diagnosis: Diagnosis | None = None

    def refuse(self, status: Status, diagnosis: Diagnosis | None = None) -> None:
        """It was refused on the node chosen for it, or its decision broke."""
        self.node_name, self.status, self.nomination, self.diagnosis = "", status, CLEAR, diagnosis

    def diagnose(self, runtime: ProfileRuntime | None = None) -> None:
        """Say why no node takes it; with a runtime, after PostFilter has tried to make room."""
        if self.search is None:
            return
        self.diagnosis = self.search.diagnosis()
        if runtime is not None:
            self.nomination = make_room(runtime, self.cycle, self.diagnosis)
        self.status = Status.unschedulable(self.diagnosis.message)


class GangAttempt:
    """The members placed so far, and those that could not be; on the rows of one placement, where they are given."""

    def __init__(
        self, placer: Placer, runtime: ProfileRuntime, rows: Rows | None = None, *, permits: bool = True
    ) -> None:
        self._placer = placer
        self._rows = rows
        self._permits = permits
        self.runtime = runtime
        self.afresh = rows is not None
        """Whether members are decided without cached answers, so that their cycles hold what plugins noted."""
        self.placed: list[Member] = []
        self.unplaced: list[Member] = []

    @property
    def members(self) -> list[Member]:
        """All that were tried."""
        return [*self.placed, *self.unplaced]

    def try_member(self, queued: QueuedPod) -> Member:
        """Put a member on the best node; without one, its `search` or `status` says why."""
        cluster = self._placer.cluster
        member = Member(queued, Cycle(queued.pod, cluster))
        try:
            found = self._search(member.cycle) if len(cluster.order.rows) else Status.unresolvable(NO_NODES)
        except PluginError as error:
            found = Status.error(str(error))
        if isinstance(found, NodeSearch):
            member.search = found
        elif isinstance(found, Status):
            member.refuse(found)
        else:
            self.place(member, cluster.names[found])
        if not member.node_name:
            self.unplaced.append(member)
        return member

    def place(self, member: Member, node_name: str) -> None:
        """Put a member on a node, unless a plugin refuses it there."""
        waits = self._placer.place(self.runtime, member.cycle, node_name, permit=self._permits)
        if isinstance(waits, Status):
            self._undo(member, node_name)
            if waits.rejected:
                diagnosis = refused_by_one(waits)
                member.refuse(Status(waits.code, (diagnosis.message,), waits.plugin), diagnosis)
            else:
                member.refuse(waits)
        else:
            member.node_name, member.waits = node_name, waits
            self.placed.append(member)

    def take_back(self) -> None:
        """Undo everything, last first; what the API says of nominations holds again."""
        while self.placed:
            member = self.placed.pop()
            self._undo(member, member.node_name)
        self.unplaced = []

    def _undo(self, member: Member, node_name: str) -> None:
        self._placer.take_back(self.runtime, member.cycle, node_name)
        pod = member.queued.pod
        if pod.status.nominated_node_name:
            self.runtime.handle.nominator.nominate(pod)

    def _search(self, cycle: Cycle) -> int | NodeSearch:
        if not self.afresh:
            return self._placer.search(self.runtime, cycle)
        cycle.placement = self._rows
        decision = decide(self.runtime, cycle, self._placer.sampling)
        return decision.search if decision.row is None else decision.row


def place_gang(attempt: GangAttempt, plugin: GangPlugin, gang: Gang, members: Sequence[QueuedPod]) -> bool:
    """Find a node for each member of a plugin's gang: in the best domain that takes them all, where the gang has
    domains. Whether so many have one that they may be bound."""
    domains = gang.domains
    if not domains:
        _try_all(attempt, members)
        return has_enough(attempt, gang)
    try:
        _in_one_domain(attempt, plugin, gang, members)
        if not has_enough(attempt, gang) and gang.may_spill:
            _spill(attempt, plugin, gang, members)
    finally:
        plugin.confine(gang, None)
    return has_enough(attempt, gang)


def has_enough(attempt: GangAttempt, gang: Gang) -> bool:
    return len(attempt.placed) >= gang.missing


def _try_all(attempt: GangAttempt, members: Iterable[QueuedPod]) -> None:
    for queued in members:
        attempt.try_member(queued)


def _in_one_domain(attempt: GangAttempt, plugin: GangPlugin, gang: Gang, members: Sequence[QueuedPod]) -> None:
    for domain in gang.domains:
        plugin.confine(gang, domain)
        _try_all(attempt, members)
        if has_enough(attempt, gang):
            return
        attempt.take_back()
    if not gang.may_spill:  # what stops them in the best domain is what they will say
        plugin.confine(gang, gang.domains[0])
        _try_all(attempt, members)


def _spill(attempt: GangAttempt, plugin: GangPlugin, gang: Gang, members: Sequence[QueuedPod]) -> None:
    """Fill one domain after another; what is left over goes wherever there is room."""
    attempt.take_back()
    left = members
    for domain in (*gang.domains, None):
        plugin.confine(gang, domain)
        attempt.unplaced = []
        _try_all(attempt, left)
        left = [each.queued for each in attempt.unplaced]
        if not left:
            return
