"""Sorts a pod's claims by what is still to be done for them.

A claim must exist, not be lost and not be on its way out, and the claim of an ephemeral volume must have been made for
the pod. A claim that is not fully bound either waits for its first consumer, which the pod now is (delayed), or should
have been bound already (immediate): then the pod has to wait. A claim that names a volume before it is bound counts as
immediate, whatever its class says.
"""

from __future__ import annotations

from typing import NamedTuple

from podium.cluster import Cluster
from podium.framework import Status
from podium.kube import PersistentVolumeClaim, Pod, Volume
from podium.kube.claims import claim_name, foreign_claim, fully_bound, is_ephemeral, not_found

UNBOUND_IMMEDIATE = Status.unresolvable("pod has unbound immediate PersistentVolumeClaims")
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"
LOST = "Lost"


class PodClaims(NamedTuple):
    """The claims in the order of the pod's volumes; one that is used twice is listed twice."""

    bound: list[PersistentVolumeClaim]
    delayed: list[PersistentVolumeClaim]


def claims_of(pod: Pod, cluster: Cluster) -> PodClaims | Status | None:
    """The pod's claims, why they are not ready, or None when it has none."""
    claims: list[PersistentVolumeClaim] = []
    for volume in pod.spec.volumes:
        name = claim_name(pod, volume)
        if name is None:
            continue
        claim = cluster.objects.claims.get(f"{pod.namespace}/{name}")
        objection = _missing(volume, name) if claim is None else _unusable(pod, volume, claim)
        if objection:
            return Status.unresolvable(objection)
        if claim is not None:
            claims.append(claim)
    return _sorted(claims, cluster) if claims else None


def _missing(volume: Volume, name: str) -> str:
    if is_ephemeral(volume):
        return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
    return not_found("persistentvolumeclaim", name)


def _unusable(pod: Pod, volume: Volume, claim: PersistentVolumeClaim) -> str:
    if claim.status.phase == LOST:
        volume_name = claim.spec.volume_name
        return f'persistentvolumeclaim "{claim.name}" bound to non-existent persistentvolume "{volume_name}"'
    if claim.terminating:
        return f'persistentvolumeclaim "{claim.name}" is being deleted'
    return foreign_claim(pod, claim) if is_ephemeral(volume) else ""


def _sorted(claims: list[PersistentVolumeClaim], cluster: Cluster) -> PodClaims | Status:
    bound: list[PersistentVolumeClaim] = []
    delayed: list[PersistentVolumeClaim] = []
    immediate = False
    for claim in claims:
        if fully_bound(claim):
            bound.append(claim)
            continue
        name = claim.storage_class_name
        storage_class = cluster.objects.storage_classes.get(name) if name else None
        if storage_class is not None and storage_class.volume_binding_mode is None:
            return Status.error(f'VolumeBindingMode not set for StorageClass "{name}"')
        waits = storage_class is not None and storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
        if waits and not claim.spec.volume_name:
            delayed.append(claim)
        else:
            immediate = True
    return UNBOUND_IMMEDIATE if immediate else PodClaims(bound, delayed)
