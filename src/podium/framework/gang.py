"""Defines a gang: pods that get their nodes together, or none of them does.

A plugin with a Permit barrier that also implements `GangPlugin` lets the engine place all members in one go
(`podium.engine.gangs`), instead of holding those that came first on their nodes until the last has come.

Also defines what plugins see of a PodGroup (scheduling.k8s.io) that is tried as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from podium.cluster import PlacedPod
from podium.framework.cycle import Cycle
from podium.framework.diagnosis import Diagnosis
from podium.framework.status import Status, Wait
from podium.kube import Pod


@dataclass(frozen=True, slots=True)
class Gang:
    """The members of a group that want a node, and how many must get one before any is bound."""

    key: str
    """The group's "namespace/name"."""
    members: Sequence[Pod]
    """In the order in which they are decided."""
    missing: int
    """How many more members must have a node."""
    refusal: Status
    """The status of a member that could have had a node while too few others could."""
    domains: Sequence[str] = ()
    """Values of a node label, the best first: all members go to one of these domains."""
    may_spill: bool = False
    """Whether the members may spread over several domains where no single one takes them all."""


@dataclass(frozen=True, slots=True)
class GangState:
    """How a pod's group stands, for an explanation."""

    kind: str
    """The kind of the group's object: "PodGroup"."""
    minimum: int
    """How many members must have a node before any is bound."""
    members: int
    """How many there are."""
    assigned: int
    """How many of them have a node."""
    objection: str
    """Why no member may be tried now; "" where they may."""
    gang: Gang
    """The members that want a node."""


class GangCount(NamedTuple):
    """How many members a group has, and needs, with and without a node."""

    key: str
    minimum: int
    members: int
    assigned: int


@runtime_checkable
class GangPlugin(Protocol):
    """A Permit plugin that groups pods. What it answers at Permit holds while members come one by one."""

    name: str

    def gang_key(self, pod: Pod, /) -> str | None:
        """The "namespace/name" of the group that the pod names; None: it names none."""

    def gang_of(self, pod: Pod, /) -> Gang | None:
        """The gang that the pod is to be placed with; None: the pod is placed by itself."""

    def gang_state(self, pod: Pod, /) -> GangState | None:
        """How the pod's group stands; None: it has none."""

    def gangs(self) -> Iterable[GangCount]:
        """Every group that has members."""

    def confine(self, gang: Gang, domain: str | None, /) -> None:
        """From now on the plugin's Filter lets members onto the nodes of this domain only; None: as usual again."""

    def permit(self, cycle: Cycle, node_name: str, /) -> Status | Wait | None: ...


class GroupFit(Protocol):
    """Whether a whole PodGroup fits while pods are off their nodes."""

    def fits(self) -> Status | None:
        """Try the group as things are; why it does not fit, where it does not."""

    @property
    def failed(self) -> Sequence[tuple[Cycle, Diagnosis]]:
        """The members that no node takes."""

    @property
    def nodes(self) -> Mapping[str, str]:
        """By uid: where the members went when the group was tried last."""

    def put_back(self, placed: PlacedPod, /) -> None:
        """Have the notes about these members follow a pod that stands on its node again."""

    def take_off(self, placed: PlacedPod, /) -> None:
        """The same for one that is taken off again."""

    def still_fits(self) -> bool:
        """Whether these members still pass the filters on their nodes, one after another."""


class GroupRoom(NamedTuple):
    """What came of making room for a PodGroup."""

    status: Status | None
    """Why there is none; None where room is being made."""
    message: str = ""
    """What the group says of it, where room is being made."""
    nodes: Mapping[str, str] = {}
    """By uid: where members are to go; an empty name clears the nomination."""


class PlacementProgress(NamedTuple):
    """How far the trial of a PodGroup has come."""

    remaining: int
    """Members not tried yet."""
    scheduled: int
    """Members with a node, those from before among them."""
