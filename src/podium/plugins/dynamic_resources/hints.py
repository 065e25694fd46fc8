"""Decides which changes may let a pod in that DynamicResources refused.

Devices that a claim gave up may help any pod. Usually an update shows that: the claim is there and has none any more.
Where a list takes the place of events, that update is hidden: the claim is gone, or has other devices by then. Both
wake pods here, and in kube-scheduler neither does; its pods wait until the queue brings back all that waited long.
"""

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
        Interest(Resource.RESOURCE_CLAIM, Action.ADD | Action.UPDATE | Action.DELETE, _claim_hint(find)),
        Interest(Resource.POD, Action.UPDATE_POD_GENERATED_CLAIM, _pod_hint(find)),
        Interest(Resource.DEVICE_CLASS, Action.ADD | Action.UPDATE),
        Interest(Resource.RESOURCE_SLICE, Action.ADD | Action.UPDATE),
    ]


def _claim_hint(find: FindClaim) -> Callable[[Pod, ResourceClaim | None, ResourceClaim | None], bool]:
    def may_help(pod: Pod, before: ResourceClaim | None, after: ResourceClaim | None) -> bool:
        """A claim that gave up devices may help any pod; otherwise it must be the pod's own, and have changed."""
        try:
            claims = claims_of_pod(pod, find)
        except ClaimNotReadyError:
            return False
        if gave_up_devices(before, after):
            return True
        if after is None or all(claim.uid != after.uid for claim in claims):
            return False
        return before is None or before.status != after.status

    return may_help


def gave_up_devices(before: ResourceClaim | None, after: ResourceClaim | None) -> bool:
    """Whether a claim had devices, and no longer has those."""
    had = None if before is None else before.status.allocation
    has = None if after is None else after.status.allocation
    return had is not None and had != has


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
