"""Decides which events may let a pod through that brought too many volumes: higher limits, volumes that go, claims."""

from __future__ import annotations

from typing import Any

from podium.cluster.attached import may_attach
from podium.kube import CSINode, PersistentVolumeClaim, Pod, VolumeAttachment
from podium.kube.claims import claim_name
from podium.kube.csi_translation import MIGRATED, TranslationError, in_tree_plugin, inline_handle


def raises_a_limit(_pod: Pod, before: CSINode, after: CSINode) -> bool:
    old = _limits_of(before)
    return any(limit > old.get(driver, 0) for driver, limit in _limits_of(after).items())


def _limits_of(node: CSINode) -> dict[str, int]:
    return {
        driver.name: 0 if driver.allocatable is None else driver.allocatable.count or 0 for driver in node.spec.drivers
    }


def frees_a_volume(_pod: Pod, before: Pod, _after: Any) -> bool:
    stood_somewhere = before.node_name or before.status.nominated_node_name
    return bool(stood_somewhere) and any(map(may_attach, before.spec.volumes))


def is_the_pods_claim(pod: Pod, _before: Any, after: PersistentVolumeClaim) -> bool:
    return after.namespace == pod.namespace and any(
        claim_name(pod, volume) == after.name for volume in pod.spec.volumes
    )


def frees_an_attachment(pod: Pod, before: VolumeAttachment, _after: Any) -> bool:
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            return True
        plugin = in_tree_plugin(volume)
        if plugin is None:
            continue
        if plugin.driver == before.spec.attacher:
            return True
        try:
            if plugin.name in MIGRATED:
                inline_handle(volume)
        except TranslationError:
            return True  # it is not known which driver would serve the disk
    return False
