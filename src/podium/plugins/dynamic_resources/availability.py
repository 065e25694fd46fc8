"""Says for people what devices the claims of a pod find: how many match each request, where, and how many are free."""

from __future__ import annotations

from collections.abc import Iterator

from podium.cluster import Cluster
from podium.kube import DeviceClass, Node, Pod, ResourceClaim
from podium.kube.claim_status import ClaimNotReadyError, claims_of_pod
from podium.kube.devices import ALL, DeviceSubRequest
from podium.placement.devices import AllocationError
from podium.placement.devices.preparation import PreparedRequest
from podium.placement.devices.uses import DeviceUses


def availability(pod: Pod, cluster: Cluster, uses: DeviceUses) -> list[str]:
    """One sentence for each request of the claims that have no devices yet."""
    try:
        claims = claims_of_pod(pod, cluster.objects.resource_claims.get)
    except ClaimNotReadyError:
        return []
    nodes = [node for node in cluster.nodes if node is not None]
    sentences = []
    for claim in claims:
        if claim.status.allocation is None:
            for name, request in _requests(claim):
                device_class = cluster.objects.device_classes.get(request.device_class_name)
                if device_class is not None:
                    sentences.append(_sentence(claim, name, request, device_class, nodes, uses))
    return sentences


def _requests(claim: ResourceClaim) -> Iterator[tuple[str, DeviceSubRequest]]:
    for request in claim.spec.devices.requests:
        if request.exactly is not None:
            yield request.name, request.exactly
        yield from ((f"{request.name}/{each.name}", each) for each in request.first_available)


def _sentence(
    claim: ResourceClaim,
    name: str,
    request: DeviceSubRequest,
    device_class: DeviceClass,
    nodes: list[Node],
    uses: DeviceUses,
) -> str:
    prepared = PreparedRequest(claim, request, name, device_class)
    offered, matching, free, places = set(), set(), set(), set()
    place = f"claim {claim.key}, request {name}"
    try:
        for node in nodes:
            for pool in uses.inventory.pools(node):
                for each in pool.devices:
                    offered.add(each.id)
                    if prepared.can_take(each, node):
                        matching.add(each.id)
                        places.add(node.name)
                        if each.id not in uses.tally.dedicated:
                            free.add(each.id)
    except AllocationError as error:
        return f"{place}: {error}"
    wanted = "all devices" if request.allocation_mode == ALL else f"{request.wanted} of class {device_class.name}"
    found = f"of {len(offered)} devices {len(matching)} match, on {len(places)} nodes; {len(free)} of them are free"
    return f"{place}: wants {wanted}; {found}"
