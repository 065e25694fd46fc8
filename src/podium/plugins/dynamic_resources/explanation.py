"""Explains why a pod that fits nowhere is given no devices: what its claims have or find, and what would unblock it.

Also finds what would have to change before the claims of a pod are given devices: one change at a time is tried.

The search that decides is run again on each node as if devices in use were free, taints tolerated, a constraint or the
selectors of a request left out, or fewer devices asked for. What then works is said with the nodes where it does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from podium.cluster import Cluster, NodeInfo
from podium.framework.clock import Clock
from podium.kube import Node, Pod, ResourceClaim, compile_node_selector
from podium.kube.claim_status import ClaimNotReadyError, claims_of_pod
from podium.kube.devices import ALL, Allocation, DeviceRequest, DeviceSubRequest, DeviceToleration
from podium.kube.extended_resources import DeviceNeeds
from podium.placement.devices import AllocationError, DeviceID, DeviceTally, InvalidPoolsError, allocate
from podium.placement.devices.allocator import repelling_taints
from podium.placement.devices.uses import DeviceUses
from podium.plugins.dynamic_resources.availability import Holders, availability, listed, taint_text
from podium.plugins.dynamic_resources.extended_resources import PodResources, claim_of_resources


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


LONGEST = 2.0
"""Seconds after which nothing more is tried."""
FREE = DeviceTally()

Claims = Sequence[ResourceClaim]


class _Change(NamedTuple):
    """A change to try: the claims and the devices in use as they would be, and a text for what came of it on a node."""

    claims: Claims
    tally: DeviceTally
    text: Callable[[Node, list[Allocation]], str]
    more_of: str = ""
    """What it is more of: not tried where less of it has been enough."""


def unblocking(claims: Claims, nodes: Sequence[Node], uses: DeviceUses, holders: Holders, clock: Clock) -> list[str]:
    """A sentence for each change that would be enough, with the nodes where it would be."""
    end = clock.now() + LONGEST

    def expired() -> bool:
        return clock.now() > end

    sentences: list[str] = []
    enough: set[str] = set()
    for change in _changes(claims, uses, holders):
        if change.more_of in enough:
            continue
        where: dict[str, list[str]] = {}
        for node in nodes:
            if expired():
                break
            pools = uses.inventory.pools(node)
            try:
                found = allocate(
                    node, pools, change.claims, uses.classes, change.tally, rules=uses.rules, expired=expired
                )
            except (AllocationError, InvalidPoolsError, TimeoutError):
                continue
            if found is not None:
                where.setdefault(change.text(node, found), []).append(node.name)
        if where and change.more_of:
            enough.add(change.more_of)
        sentences += [f"it would fit on {listed(names)} if {text}" for text, names in where.items()]
    if expired():
        sentences.append(f"there may be more that would do: nothing else was tried after {LONGEST:g} seconds")
    return sentences or ["it needs more devices: no single change of claims, taints and devices in use would do"]


def _changes(claims: Claims, uses: DeviceUses, holders: Holders) -> Iterator[_Change]:
    yield _Change(claims, FREE, lambda _node, found: _freed(found, holders))
    tolerant = [_with_requests(claim, _tolerant) for claim in claims]
    yield _Change(tolerant, uses.tally, lambda node, found: _tolerated(claims, uses, node, found))
    for number, claim in enumerate(claims):
        for index, constraint in enumerate(claim.spec.devices.constraints):
            left = tuple(each for each in claim.spec.devices.constraints if each is not constraint)
            changed = replace(claim, spec=replace(claim.spec, devices=replace(claim.spec.devices, constraints=left)))
            attribute = constraint.match_attribute or constraint.distinct_attribute
            text = f"claim {claim.key} had no constraint #{index} ({attribute})"
            yield _Change(_exchanged(claims, number, changed), uses.tally, _saying(text))
        for name, request in _parts(claim):
            place = f"request {name} of claim {claim.key}"
            if request.selectors:
                changed = _with_request(claim, name, replace(request, selectors=()))
                yield _Change(_exchanged(claims, number, changed), uses.tally, _saying(f"{place} had no selectors"))
            if request.allocation_mode != ALL:
                for fewer in range(request.wanted - 1, 0, -1):
                    changed = _with_request(claim, name, replace(request, count=fewer))
                    text = f"{place} wanted {fewer} instead of {request.wanted}"
                    yield _Change(_exchanged(claims, number, changed), uses.tally, _saying(text), more_of=place)


def _saying(text: str) -> Callable[[Node, list[Allocation]], str]:
    return lambda _node, _found: text


def _freed(found: list[Allocation], holders: Holders) -> str:
    """Who would have to give back devices: those that were found, or others of their pools with what they share."""
    chosen = {DeviceID(each.driver, each.pool, each.device) for given in found for each in given.devices.results}
    pools = {device[:2] for device in chosen}
    for in_the_way in (chosen, [device for device in holders if device[:2] in pools]):
        claims = sorted({claim for device in in_the_way for claim in holders.get(device, ())})
        if claims:
            return f"claim {listed(claims)} gave back {'its' if len(claims) == 1 else 'their'} devices"
    return "devices that are being given to other pods were free"


def _tolerated(claims: Claims, uses: DeviceUses, node: Node, found: list[Allocation]) -> str:
    offered = {each.id: each.device for pool in uses.inventory.pools(node) for each in pool.devices}
    taints = {
        taint_text(taint)
        for claim, given in zip(claims, found, strict=True)
        for each in given.devices.results
        for taint in repelling_taints(
            offered[DeviceID(each.driver, each.pool, each.device)], dict(_parts(claim))[each.request].tolerations
        )
    }
    return f"it tolerated the taint {' and '.join(sorted(taints))}"


def _tolerant(request: DeviceSubRequest) -> DeviceSubRequest:
    return replace(request, tolerations=(DeviceToleration(operator="Exists"),))


def _parts(claim: ResourceClaim) -> Iterator[tuple[str, DeviceSubRequest]]:
    """Requests and the alternatives of requests, by name."""
    for request in claim.spec.devices.requests:
        if request.exactly is not None:
            yield request.name, request.exactly
        yield from ((f"{request.name}/{each.name}", each) for each in request.first_available)


def _with_requests(claim: ResourceClaim, change: Callable[[DeviceSubRequest], DeviceSubRequest]) -> ResourceClaim:
    for name, request in list(_parts(claim)):
        claim = _with_request(claim, name, change(request))
    return claim


def _with_request(claim: ResourceClaim, name: str, changed: DeviceSubRequest) -> ResourceClaim:
    devices = claim.spec.devices
    requests = tuple(_exchanged_part(each, name, changed) for each in devices.requests)
    return replace(claim, spec=replace(claim.spec, devices=replace(devices, requests=requests)))


def _exchanged_part(request: DeviceRequest, name: str, changed: DeviceSubRequest) -> DeviceRequest:
    if request.exactly is not None:
        return replace(request, exactly=changed) if request.name == name else request
    return replace(
        request,
        first_available=tuple(
            changed if f"{request.name}/{each.name}" == name else each for each in request.first_available
        ),
    )


def _exchanged(claims: Claims, number: int, changed: ResourceClaim) -> list[ResourceClaim]:
    return [changed if index == number else claim for index, claim in enumerate(claims)]
