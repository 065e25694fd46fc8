"""Keeps pods to the zone or region that their bound volumes are labelled with (VolumeZone).

A label may name several zones, separated by "__"; one that contains an empty name is ignored. A node without any zone
or region label is taken for a cluster of one zone and passes. Otherwise each of the volume's labels must be on the node
with one of its values; for a beta label the current one will do. Claims still waiting for their first consumer have no
volume yet and say nothing. Ephemeral volumes are not looked at.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple

import numpy as np

from podium.cluster import Cluster, Mask, Nodes
from podium.cluster.facts import CLAIM_CONCERNS
from podium.framework import SKIP, Action, Cycle, DependsOn, Interest, NodePart, Plugin, Resource, Status, Verdict
from podium.kube import PersistentVolume, PersistentVolumeClaim, Pod, StorageClass
from podium.kube.claims import not_found
from podium.kube.csi_translation import BETA_REGION, BETA_ZONE, MULTI_ZONE_DELIMITER, REGION, ZONE
from podium.kube.selector import Requirement

NAME = "VolumeZone"
PRE_FILTER = f"PreFilter{NAME}"
ELSEWHERE = Status.unresolvable("node(s) had no available volume zone")
NO_CLAIM_NAME = Status.unresolvable("PersistentVolumeClaim had no name")
NO_VOLUME_AND_NO_CLASS = Status.unresolvable("PersistentVolumeClaim had no pv name and storageClass name")
NO_VOLUME = Status.unresolvable("PersistentVolume had no name")
TOPOLOGY_LABELS = (BETA_ZONE, BETA_REGION, ZONE, REGION)
CURRENT_LABEL = {BETA_ZONE: ZONE, BETA_REGION: REGION}
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"


class Zone(NamedTuple):
    """One topology label of a volume: a node must have one of the values under the key."""

    key: str
    values: tuple[str, ...]


class VolumeZone(Plugin):
    name = NAME
    trusted = True
    depends_on = DependsOn(node=NodePart.OBJECT, claims=False)

    def interests(self) -> Iterable[Interest]:
        return [
            Interest(Resource.STORAGE_CLASS, Action.ADD, _lets_claims_wait, by_signature=True),
            Interest(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
            Interest(
                Resource.PVC, Action.ADD | Action.UPDATE, _is_the_pods_claim, by_signature=True, concerns=CLAIM_CONCERNS
            ),
            Interest(Resource.PV, Action.ADD | Action.UPDATE, _moves_a_volume, by_signature=True),
        ]

    def answer_key(self, pod: Pod) -> Hashable:
        """The zones asked for."""
        if not _claim_names(pod):
            return ()
        zones = zones_of(pod, self.handle.cluster)
        return None if isinstance(zones, Status) else (NAME, *zones)

    def pre_filter(self, cycle: Cycle) -> Status | None:
        zones = zones_of(cycle.pod, cycle.cluster)
        if isinstance(zones, Status):
            return zones
        if not zones:
            return SKIP
        cycle.data[PRE_FILTER] = zones
        return None

    def filter(self, cycle: Cycle, nodes: Nodes) -> Verdict | None:
        zones: list[Zone] | Status = cycle.data.get(PRE_FILTER) or zones_of(cycle.pod, cycle.cluster)
        if isinstance(zones, Status):
            return Verdict.reject(np.ones(len(nodes), dtype=np.bool_), zones)
        if not zones:
            return None
        zoned: Mask = np.zeros(len(nodes), dtype=np.bool_)
        for key in TOPOLOGY_LABELS:
            zoned |= nodes.has_label(key)
        inside: Mask = np.ones(len(nodes), dtype=np.bool_)
        for zone in dict.fromkeys(zones):
            inside &= _inside(zone, nodes)
        return Verdict.reject(zoned & ~inside, ELSEWHERE)


def _inside(zone: Zone, nodes: Nodes) -> Mask:
    inside = nodes.match((Requirement(zone.key, "In", zone.values),))
    current = CURRENT_LABEL.get(zone.key)
    if current is not None:
        inside |= ~nodes.has_label(zone.key) & nodes.match((Requirement(current, "In", zone.values),))
    return inside


def zones_of(pod: Pod, cluster: Cluster) -> list[Zone] | Status:
    """The topology labels of all volumes the pod's claims are bound to, or what is wrong with a claim."""
    objects = cluster.objects
    zones: list[Zone] = []
    for name in _claim_names(pod):
        if not name:
            return NO_CLAIM_NAME
        claim = objects.claims.get(f"{pod.namespace}/{name}")
        if claim is None:
            return Status.unresolvable(not_found("persistentvolumeclaim", name))
        if not claim.spec.volume_name:
            objection = _may_not_wait(claim, cluster)
            if objection is not None:
                return objection
            continue
        volume = objects.volumes.get(claim.spec.volume_name)
        if volume is None:
            return Status.unresolvable(not_found("persistentvolume", claim.spec.volume_name))
        zones += volume_zones(volume)
    return zones


def _may_not_wait(claim: PersistentVolumeClaim, cluster: Cluster) -> Status | None:
    """Why a claim ought to have a volume by now; None when it gets one with its first consumer."""
    name = claim.storage_class_name
    if not name:
        return NO_VOLUME_AND_NO_CLASS
    storage_class = cluster.objects.storage_classes.get(name)
    if storage_class is None:
        return Status.unresolvable(not_found("storageclass.storage.k8s.io", name))
    if storage_class.volume_binding_mode is None:
        return Status.unresolvable(f'VolumeBindingMode not set for StorageClass "{name}"')
    return None if storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER else NO_VOLUME


def volume_zones(volume: PersistentVolume) -> list[Zone]:
    labels = volume.labels
    zones: list[Zone] = []
    for key in TOPOLOGY_LABELS if labels else ():
        values = {value.strip() for value in labels.get(key, "").split(MULTI_ZONE_DELIMITER)}
        if "" not in values:
            zones.append(Zone(key, tuple(sorted(values))))
    return zones


def _claim_names(pod: Pod) -> list[str]:
    return [
        volume.persistent_volume_claim.claim_name
        for volume in pod.spec.volumes
        if volume.persistent_volume_claim is not None
    ]


def _lets_claims_wait(_pod: Pod, _before: Any, after: StorageClass) -> bool:
    return after.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


def _is_the_pods_claim(pod: Pod, _before: Any, after: PersistentVolumeClaim) -> bool:
    return after.namespace == pod.namespace and after.name in _claim_names(pod)


def _moves_a_volume(_pod: Pod, before: PersistentVolume | None, after: PersistentVolume) -> bool:
    return before is None or volume_zones(before) != volume_zones(after)
