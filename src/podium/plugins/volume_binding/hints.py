"""Decides which changes may let a pod in that VolumeBinding refused."""

from __future__ import annotations

from collections.abc import Iterable

from podium.cluster.csi_nodes import MIGRATED_PLUGINS
from podium.cluster.facts import CLAIM_CONCERNS
from podium.cluster.free_volumes import volume_limit
from podium.framework import Action, Interest, Resource
from podium.kube import CSIDriver, CSINode, CSIStorageCapacity, PersistentVolumeClaim, Pod, StorageClass
from podium.kube.claims import claim_name


def interests() -> Iterable[Interest]:
    return [
        Interest(Resource.STORAGE_CLASS, Action.ADD | Action.UPDATE, _topologies_changed, by_signature=True),
        Interest(Resource.PVC, Action.ADD | Action.UPDATE, _is_the_pods_claim, concerns=CLAIM_CONCERNS),
        Interest(Resource.PV, Action.ADD | Action.UPDATE),
        Interest(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
        Interest(Resource.CSI_NODE, Action.ADD | Action.UPDATE, _migration_changed, by_signature=True),
        Interest(Resource.CSI_DRIVER, Action.UPDATE, _stops_reporting_capacity, by_signature=True),
        Interest(Resource.CSI_CAPACITY, Action.ADD | Action.UPDATE, _capacity_grew, by_signature=True),
    ]


def _topologies_changed(_pod: Pod, before: StorageClass | None, after: StorageClass) -> bool:
    return before is None or before.allowed_topologies != after.allowed_topologies


def _is_the_pods_claim(pod: Pod, _before: PersistentVolumeClaim | None, after: PersistentVolumeClaim) -> bool:
    return after.namespace == pod.namespace and any(
        claim_name(pod, volume) == after.name for volume in pod.spec.volumes
    )


def _migration_changed(_pod: Pod, before: CSINode | None, after: CSINode) -> bool:
    return before is None or before.annotations.get(MIGRATED_PLUGINS, "") != after.annotations.get(MIGRATED_PLUGINS, "")


def _stops_reporting_capacity(pod: Pod, before: CSIDriver, after: CSIDriver) -> bool:
    """Only inline volumes of the driver are looked at, although it is claims that need capacity."""
    stops = bool(before.spec.storage_capacity) and not after.spec.storage_capacity
    return stops and any(volume.csi is not None and volume.csi.driver == after.name for volume in pod.spec.volumes)


def _capacity_grew(_pod: Pod, before: CSIStorageCapacity | None, after: CSIStorageCapacity) -> bool:
    if before is None:
        return True
    old, new = volume_limit(before), volume_limit(after)
    return new is not None and (old is None or new > old)
