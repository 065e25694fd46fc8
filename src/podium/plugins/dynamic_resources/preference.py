"""Ranks a node by which alternatives its devices are: the earlier in the lists of requests, the better."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from podium.kube import ResourceClaim
from podium.kube.devices import Allocation

MOST_ALTERNATIVES: Final = 8


def has_alternatives(claim: ResourceClaim) -> bool:
    return any(request.first_available for request in claim.spec.devices.requests)


def rank(claims: Iterable[ResourceClaim], found: Sequence[Allocation]) -> int:
    """The sum over all requests with alternatives; `found` is for the claims that have no devices yet, in order."""
    left = iter(found)
    total = 0
    for claim in claims:
        allocation = claim.status.allocation or next(left)
        taken = {result.request for result in allocation.devices.results}
        for request in claim.spec.devices.requests:
            for number, each in enumerate(request.first_available):
                if f"{request.name}/{each.name}" in taken:
                    total += MOST_ALTERNATIVES - number
    return total
