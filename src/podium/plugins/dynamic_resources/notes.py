"""Holds what one attempt finds out of a pod's claims, from PreFilter to PreBind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from podium.cluster.objects import Store
from podium.framework import Status
from podium.kube import DeviceClass, NodeTerms, ResourceClaim
from podium.kube.devices import Allocation
from podium.kube.extended_resources import DeviceNeeds
from podium.placement.devices.node_answers import NodeAnswers
from podium.plugins.dynamic_resources.extended_resources import PodResources


class ClaimWay(NamedTuple):
    """One way in which nodes can serve a pod: what its extended resources need of devices there, the claims that need
    devices, and what nodes answer.

    Without answers there is nothing to be allocated.
    """

    needs: DeviceNeeds | None
    claims: Sequence[ResourceClaim]
    answers: NodeAnswers | None


NO_WAY = ClaimWay(None, (), None)
"""For nodes that need no devices; it comes last, so that −1 finds it."""


@dataclass
class ClaimNotes:
    """The claims of a pod; the one of its extended resources, where there is one, comes last."""

    claims: list[ResourceClaim] = field(default_factory=list)
    resources: PodResources | None = None
    """The extended resources that the last claim is for."""
    nodes: list[NodeTerms | None] = field(default_factory=list)
    """Where each claim that has devices can be used; None: anywhere."""
    missing: list[int] = field(default_factory=list)
    """The claims that need devices."""
    found: dict[str, list[Allocation]] = field(default_factory=dict)
    """What these claims would get, by node, where a node was asked by itself."""
    ways: list[ClaimWay] = field(default_factory=list)
    """What claims ask for on nodes, where all were asked together."""
    way_of: dict[int, int] = field(default_factory=dict)
    """The rows that do not take the first of the ways."""
    needs: dict[str, DeviceNeeds] = field(default_factory=dict)
    """What extended resources need of devices, by node."""
    given: dict[int, Allocation] = field(default_factory=dict)
    """What claims get on the node that was chosen."""

    @property
    def special(self) -> ResourceClaim | None:
        """The claim of the extended resources."""
        return self.claims[-1] if self.resources is not None else None

    @property
    def user_claims(self) -> int:
        """How many claims the pod itself names."""
        return len(self.claims) - (self.resources is not None)

    @property
    def only_special_is_missing(self) -> bool:
        return self.resources is not None and self.missing == [len(self.claims) - 1]

    def way(self, row: int) -> ClaimWay | None:
        return self.ways[self.way_of.get(row, 0)] if self.ways else None

    def allocations(self, row: int, node_name: str) -> list[Allocation] | None:
        """What the claims that need devices get on a node."""
        found = self.found.get(node_name)
        if found is not None:
            return found
        way = self.way(row)
        return None if way is None or way.answers is None else way.answers.allocations(row)

    def to_allocate(self, special: ResourceClaim | None) -> list[ResourceClaim]:
        """The claims that need devices, with the one of extended resources as it is on a node."""
        claims = [self.claims[number] for number in self.missing]
        if special is not None and self.missing[-1] == len(self.claims) - 1:
            claims[-1] = special
        return claims


NOTHING = ClaimNotes()
"""The notes of pods without claims, which no step changes."""


def problem_of_requests(claim: ResourceClaim, classes: Store[DeviceClass]) -> Status | None:
    """Why no node can give a claim what it asks for."""
    for request in claim.spec.devices.requests:
        if request.exactly is not None:
            wanted = [(request.name, request.exactly)]
        else:
            wanted = [(f"{request.name}/{each.name}", each) for each in request.first_available]
        if not wanted:
            unknown = f"resource claim {claim.key}, request {request.name}: unknown request type"
            return Status.unresolvable(unknown)
        for name, each in wanted:
            if not each.device_class_name:
                return Status.error(f"request {name}: unsupported request type")
            if classes.get(each.device_class_name) is None:
                return Status.unresolvable(f"request {name}: device class {each.device_class_name} does not exist")
    return None
