"""Changes the status of resource claims, and finds those of a pod, with Kubernetes' words for what is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from podium.kube.devices import FINALIZER, Allocation, ClaimConsumer, ResourceClaim, ResourceClaimStatus
from podium.kube.meta import format_time
from podium.kube.pod import Pod, PodResourceClaim


class ClaimNotReadyError(Exception):
    """Why the claims of a pod cannot be used yet."""


def claims_of_pod(pod: Pod, find: Callable[[str], ResourceClaim | None]) -> list[ResourceClaim]:
    """The claims of a pod, in order; `find` gives a claim by "namespace/name"."""
    return list(_claims(pod, find)) if pod.spec.resource_claims else []


def _claims(pod: Pod, find: Callable[[str], ResourceClaim | None]) -> Iterator[ResourceClaim]:
    for each in pod.spec.resource_claims:
        name = claim_name(pod, each)
        if name is None:
            continue
        claim = find(f"{pod.namespace}/{name}")
        if claim is None:
            raise ClaimNotReadyError(f'could not find ResourceClaim "{pod.namespace}/{name}"')
        if claim.metadata.deletion_timestamp is not None:
            raise ClaimNotReadyError(f'resourceclaim "{claim.name}" is being deleted')
        controller = claim.metadata.controller
        if each.resource_claim_name is None and (controller is None or controller.uid != pod.uid):
            message = f"ResourceClaim {claim.key} was not created for Pod {pod.key} (Pod is not owner)"
            raise ClaimNotReadyError(message)
        yield claim


def claim_name(pod: Pod, each: PodResourceClaim) -> str | None:
    """The name of the claim that stands behind an entry of a pod; None where none is needed."""
    if each.resource_claim_name is not None:
        return each.resource_claim_name
    if each.resource_claim_template_name is None:
        missing = "none of the supported fields are set"
        raise ClaimNotReadyError(f'pod "{pod.key}", spec.resourceClaim "{each.name}": {missing}')
    for status in pod.status.resource_claim_statuses:
        if status.name == each.name:
            return status.resource_claim_name
    raise ClaimNotReadyError(f'pod "{pod.key}": ResourceClaim not created yet')


def is_reserved_for(claim: ResourceClaim, pod: Pod) -> bool:
    return any(each.uid == pod.uid for each in claim.status.reserved_for)


def consumer(pod: Pod) -> ClaimConsumer:
    return ClaimConsumer(resource="pods", name=pod.name, uid=pod.uid)


def reserved(claim: ResourceClaim, allocation: Allocation | None, pod: Pod, now: float) -> ResourceClaim:
    """The claim in use by a pod, with what it was given unless it has that already."""
    given = allocation or claim.status.allocation
    if given is not None and given.allocation_timestamp is None:
        given = replace(given, allocation_timestamp=format_time(now))
    status = replace(claim.status, allocation=given, reserved_for=(*claim.status.reserved_for, consumer(pod)))
    finalizers = claim.metadata.finalizers
    if FINALIZER not in finalizers:
        finalizers = (*finalizers, FINALIZER)
    return replace(claim, metadata=replace(claim.metadata, finalizers=finalizers), status=status)


def released(claim: ResourceClaim, pod: Pod) -> ResourceClaim:
    """The claim no longer in use by a pod."""
    left = tuple(each for each in claim.status.reserved_for if each.uid != pod.uid)
    return replace(claim, status=replace(claim.status, reserved_for=left))


def deallocated(claim: ResourceClaim) -> ResourceClaim:
    """The claim without what it was given; its finalizer stays."""
    return replace(claim, status=ResourceClaimStatus())
