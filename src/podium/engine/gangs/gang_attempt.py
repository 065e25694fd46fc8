"""Decides for the members of a gang one after another, each with those before it in place.

Members are placed on the live state: assumed, reserved and permitted like any pod, so that every plugin sees them. What
was placed is taken back in reverse order, which leaves the state exactly as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from podium.cluster import Cluster
from podium.engine.decide import NodeSearch
from podium.framework.cycle import Cycle
from podium.framework.gang import Gang, GangPlugin
from podium.framework.profile import ProfileRuntime
from podium.framework.queued import QueuedPod
from podium.framework.status import PluginError, Status, Waits


class Placer(Protocol):
    """Decides for one pod, places it, and takes it back: the scheduler does, and whoever explains."""

    cluster: Cluster

    def search(self, runtime: ProfileRuntime, cycle: Cycle) -> int | NodeSearch: ...

    def place(self, runtime: ProfileRuntime, cycle: Cycle, node_name: str) -> Status | Waits: ...

    def take_back(self, runtime: ProfileRuntime, cycle: Cycle, node_name: str) -> None: ...


@dataclass(slots=True)
class PlacedMember:
    queued: QueuedPod
    cycle: Cycle
    node_name: str
    waits: Waits
    """How long plugins want it held at Permit."""


@dataclass(slots=True)
class UnplacedMember:
    queued: QueuedPod
    cycle: Cycle
    why: NodeSearch | Status
    """No node takes it, or a plugin refused it on its node."""


class GangAttempt:
    """The members placed so far, and those that could not be."""

    def __init__(self, placer: Placer, runtime: ProfileRuntime, plugin: GangPlugin, gang: Gang) -> None:
        self._placer = placer
        self._runtime = runtime
        self._plugin = plugin
        self._gang = gang
        self.placed: list[PlacedMember] = []
        self.unplaced: list[UnplacedMember] = []

    @property
    def enough(self) -> bool:
        """Whether so many members have a node that all who have one may be bound."""
        return len(self.placed) >= self._gang.missing

    @property
    def members(self) -> list[PlacedMember | UnplacedMember]:
        """All that were tried."""
        return [*self.placed, *self.unplaced]

    def place_members(self, members: Sequence[QueuedPod]) -> None:
        """Find a node for each: in the best domain that takes them all, where the gang has domains."""
        domains = self._gang.domains
        if not domains:
            self._decide(members)
            return
        try:
            self._in_one_domain(domains, members)
            if not self.enough and self._gang.may_spill:
                self._spill(domains, members)
        finally:
            self._plugin.confine(self._gang, None)

    def _in_one_domain(self, domains: Sequence[str], members: Sequence[QueuedPod]) -> None:
        for domain in domains:
            self._plugin.confine(self._gang, domain)
            self._decide(members)
            if self.enough:
                return
            self.take_back()
        if not self._gang.may_spill:  # what stops them in the best domain is what they will say
            self._plugin.confine(self._gang, domains[0])
            self._decide(members)

    def _spill(self, domains: Sequence[str], members: Sequence[QueuedPod]) -> None:
        """Fill one domain after another; what is left over goes wherever there is room."""
        self.take_back()
        left = members
        for domain in (*domains, None):
            self._plugin.confine(self._gang, domain)
            self.unplaced = []
            self._decide(left)
            left = [each.queued for each in self.unplaced]
            if not left:
                return

    def _decide(self, members: Iterable[QueuedPod]) -> None:
        placer, runtime, names = self._placer, self._runtime, self._placer.cluster.names
        for queued in members:
            cycle = Cycle(queued.pod, placer.cluster)
            try:
                found = placer.search(runtime, cycle)
            except PluginError as error:
                self.unplaced.append(UnplacedMember(queued, cycle, Status.error(str(error))))
                continue
            if not isinstance(found, int):
                self.unplaced.append(UnplacedMember(queued, cycle, found))
                continue
            node_name = names[found]
            waits = placer.place(runtime, cycle, node_name)
            if isinstance(waits, Status):
                placer.take_back(runtime, cycle, node_name)
                self.unplaced.append(UnplacedMember(queued, cycle, waits))
            else:
                self.placed.append(PlacedMember(queued, cycle, node_name, waits))

    def take_back(self) -> None:
        """Undo everything, last first."""
        while self.placed:
            member = self.placed.pop()
            self._placer.take_back(self._runtime, member.cycle, member.node_name)
        self.unplaced = []
