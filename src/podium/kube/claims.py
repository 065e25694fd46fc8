"""Finds how pods, claims and volumes point at each other, and words a pointer that leads nowhere as Kubernetes does.

A pod's volume uses a claim either by name, or as a generic ephemeral volume whose claim is named after pod and volume
and must be controlled by the pod. A claim is fully bound once it names a volume and the volume controller has marked
the binding as completed.
"""

from typing import Final

from podium.kube.pod import Pod, Volume
from podium.kube.storage import PersistentVolumeClaim

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"


def claim_name(pod: Pod, volume: Volume) -> str | None:
    """The name of the claim that a volume of the pod uses; None when it uses none."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    if volume.ephemeral is not None:
        return f"{pod.name}-{volume.name}"
    return None


def is_ephemeral(volume: Volume) -> bool:
    """Whether the volume's claim is made for the pod alone."""
    return volume.persistent_volume_claim is None and volume.ephemeral is not None


def foreign_claim(pod: Pod, claim: PersistentVolumeClaim) -> str:
    """Why a claim cannot serve as the pod's ephemeral volume: it was not made for the pod. "" when it was."""
    controller = claim.metadata.controller
    if claim.namespace == pod.namespace and controller is not None and controller.uid == pod.uid:
        return ""
    return f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"


def fully_bound(claim: PersistentVolumeClaim) -> bool:
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.annotations


def not_found(kind: str, name: str) -> str:
    """What the API says of an object that does not exist.

    >>> not_found("persistentvolumeclaim", "data")
    'persistentvolumeclaim "data" not found'
    """
    return f'{kind} "{name}" not found'
