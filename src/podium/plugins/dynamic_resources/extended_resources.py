"""Meets extended resources of a pod by devices, on nodes that offer none of them themselves.

The pod gets one claim for all. Until PreBind it is in memory only, since each node may leave it something else to ask
for. A claim that is there already is left from an attempt that failed: no node will do until PostFilter has deleted it.
"""

from __future__ import annotations

from podium.cluster import NodeInfo, Nodes, PodFacts
from podium.framework import Status
from podium.kube import Pod, ResourceClaim
from podium.kube.extended_resources import DeviceNeeds, claim_in_memory, device_needs, wanted_device_resources
from podium.placement.devices.uses import DeviceUses

LEFT_OVER = Status.unresolvable("cannot schedule extended resource claim")
NOT_OFFERED = Status.unresolvable("cannot fit resource")


def may_be_devices(pod: Pod) -> list[str]:
    """The resources of a pod that device classes may stand behind."""
    return list(wanted_device_resources(pod))


class PodResources:
    """The extended resources of a pod of which at least one has a device class, and what they need of devices."""

    def __init__(self, pod: Pod, classes: dict[str, str | None]) -> None:
        self._pod = pod
        self._classes = classes
        self._needs: dict[tuple[str, ...], DeviceNeeds] = {}

    @staticmethod
    def of(pod: Pod, facts: PodFacts, uses: DeviceUses) -> PodResources | None:
        """None where no class stands behind any."""
        if not facts.scalar:
            return None
        found = {name: uses.resources.class_of(name) for name in may_be_devices(pod)}
        if not any(found.values()):
            return None
        return PodResources(pod, {name: each.name if each else None for name, each in found.items()})

    def needs_on(self, node: NodeInfo, claim: ResourceClaim, *, alone: bool) -> DeviceNeeds | Status | None:
        """What devices of a node have to meet; None where the claim for it is not needed there.

        A status refuses the node. `alone`: the pod has no other claims.
        """
        if claim.spec.devices.requests:
            return LEFT_OVER
        offered = node.node.status.allocatable
        by_devices = []
        for name, class_name in self._classes.items():
            if class_name is not None and not node.allocatable(name):
                by_devices.append(name)
            elif name not in offered:
                return NOT_OFFERED
        if claim.status.allocation is not None or (alone and not by_devices):
            return None
        return self._needs_of(tuple(by_devices))

    def needs_everywhere(self, nodes: Nodes, claim: ResourceClaim) -> DeviceNeeds | None:
        """What devices have to meet on all nodes, where none offers any of the resources; None: ask node by node."""
        if claim.spec.devices.requests or claim.status.allocation is not None or not all(self._classes.values()):
            return None
        if any(nodes.cluster.resources.allocatable_of(name).any() for name in self._classes):
            return None
        return self._needs_of(tuple(self._classes))

    def _needs_of(self, by_devices: tuple[str, ...]) -> DeviceNeeds:
        known = self._needs.get(by_devices)
        if known is None:
            names = {name: self._classes[name] or "" for name in by_devices}
            known = self._needs[by_devices] = device_needs(self._pod, names)
        return known


def claim_of_resources(pod: Pod, uses: DeviceUses) -> ResourceClaim:
    """The claim for a pod's extended resources: the one that an attempt before left, or one in memory."""
    return uses.claim_made_for(pod) or claim_in_memory(pod)
