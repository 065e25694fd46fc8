"""Decides which changes may let a pod in that DynamicResources refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from podium.framework import Action, Interest, Resource
from podium.kube import Pod, ResourceClaim
from podium.kube.claim_status import ClaimNotReadyError, claims_of_pod

FindClaim = Callable[[str], ResourceClaim | None]


def interests(find: FindClaim) -> Iterable[Interest]:
    """`find` gives a claim by "namespace/name"."""
    return [
        Interest(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE),
        Interest(Resource.RESOURCE_CLAIM, Action.ADD | Action.UPDATE, _claim_hint(find)),
        Interest(Resource.POD, Action.UPDATE_POD_GENERATED_CLAIM, _pod_hint(find)),
        Interest(Resource.DEVICE_CLASS, Action.ADD | Action.UPDATE),
        Interest(Resource.RESOURCE_SLICE, Action.ADD | Action.UPDATE),
    ]


def _claim_hint(find: FindClaim) -> Callable[[Pod, ResourceClaim | None, ResourceClaim], bool]:
    def may_help(pod: Pod, before: ResourceClaim | None, after: ResourceClaim) -> bool:
        """A claim that lost its devices may help any pod; otherwise it must be the pod's own, and have changed."""
        try:
            claims = claims_of_pod(pod, find)
        except ClaimNotReadyError:
            return False
        if before is not None and before.status.allocation is not None and after.status.allocation is None:
            return True
        if all(claim.uid != after.uid for claim in claims):
            return False
        return before is None or before.status != after.status

    return may_help


def _pod_hint(find: FindClaim) -> Callable[[Pod, Pod | None, Pod], bool]:
    def may_help(pod: Pod, _before: Pod | None, after: Pod) -> bool:
        if pod.uid != after.uid:
            return False
        try:
            claims_of_pod(after, find)
        except ClaimNotReadyError:
            return False
        return True

    return may_help
