"""Holds what one attempt finds out of a pod's claims, from PreFilter to PreBind."""

from __future__ import annotations

from dataclasses import dataclass, field

from podium.kube import NodeTerms, ResourceClaim
from podium.kube.devices import Allocation
from podium.kube.extended_resources import DeviceNeeds
from podium.plugins.dynamic_resources.extended_resources import PodResources


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
    """What these claims would get, by node."""
    needs: dict[str, DeviceNeeds] = field(default_factory=dict)
    """What extended resources need of devices, by node."""
    unavailable: dict[int, None] = field(default_factory=dict)
    """The claims that kept the pod from a node."""
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

    def to_allocate(self, special: ResourceClaim | None) -> list[ResourceClaim]:
        """The claims that need devices, with the one of extended resources as it is on a node."""
        claims = [self.claims[number] for number in self.missing]
        if special is not None and self.missing[-1] == len(self.claims) - 1:
            claims[-1] = special
        return claims


NOTHING = ClaimNotes()
"""The notes of pods without claims, which no step changes."""
