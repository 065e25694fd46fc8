"""Explains why a pod that fits nowhere is given no devices: what its claims have or find, and what would unblock it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from podium.cluster import Cluster, NodeInfo
from podium.framework.clock import Clock
from podium.kube import Node, Pod, ResourceClaim, compile_node_selector
from podium.kube.claim_status import ClaimNotReadyError, claims_of_pod
from podium.kube.extended_resources import DeviceNeeds
from podium.placement.devices import DeviceID
from podium.placement.devices.uses import DeviceUses
from podium.plugins.dynamic_resources.availability import availability, listed
from podium.plugins.dynamic_resources.extended_resources import PodResources, claim_of_resources
from podium.plugins.dynamic_resources.unblocking import unblocking


def explain_claims(pod: Pod, cluster: Cluster, uses: DeviceUses, clock: Clock) -> list[str]:
    """Where claims are tied to by their devices; what others find, request by request; what would unblock the pod."""
    try:
        claims = list(claims_of_pod(pod, cluster.objects.resource_claims.get))
    except ClaimNotReadyError:
        return []
    special = _for_extended_resources(pod, cluster, uses, alone=not claims)
    nodes = [node for node in cluster.nodes if node is not None]
    lines = [_tied(claim, nodes) for claim in claims if claim.status.allocation is not None]
    waiting = [claim for claim in claims if claim.status.allocation is None]
    waiting += [special] if special is not None else []
    if waiting:
        holders = _holders(cluster.objects.resource_claims)
        lines += [line for claim in waiting for line in availability(claim, nodes, uses, holders)]
        lines += unblocking(waiting, nodes, uses, holders, clock)
    return lines


def _tied(claim: ResourceClaim, nodes: Sequence[Node]) -> str:
    """Where a claim can be used that has devices."""
    allocation = claim.status.allocation
    assert allocation is not None
    results = allocation.devices.results
    devices = listed([str(DeviceID(each.driver, each.pool, each.device)) for each in results])
    selector = allocation.node_selector
    terms = None if selector is None else compile_node_selector(selector)
    names = [node.name for node in nodes if terms is None or terms.matches(node.labels, node.name)]
    users = [user.name for user in claim.status.reserved_for]
    return (
        f"claim {claim.key}: has {devices}, for use on {listed(names) if names else 'no node that is here'}; "
        f"{f'reserved for {listed(users)}' if users else 'no pod has it reserved'}"
    )


def _for_extended_resources(pod: Pod, cluster: Cluster, uses: DeviceUses, *, alone: bool) -> ResourceClaim | None:
    """The claim that would be made for extended resources, as of the first node that would need it."""
    resources = PodResources.of(pod, cluster.facts.of(pod), uses)
    if resources is None:
        return None
    claim = claim_of_resources(pod, uses)
    for row in cluster.order.rows.tolist():
        needs = resources.needs_on(NodeInfo(cluster, row), claim, alone=alone)
        if isinstance(needs, DeviceNeeds):
            return needs.within(claim)
    return None


def _holders(claims: Iterable[ResourceClaim]) -> dict[DeviceID, list[str]]:
    """The claims that each device is given to, those with admin access left out."""
    holders: dict[DeviceID, list[str]] = {}
    for claim in claims:
        if claim.status.allocation is not None:
            for each in claim.status.allocation.devices.results:
                if not each.admin_access:
                    holders.setdefault(DeviceID(each.driver, each.pool, each.device), []).append(claim.key)
    return holders
