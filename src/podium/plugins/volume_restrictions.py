"""VolumeRestrictions: disks and claims that two pods may not share.

Disks that a pod names itself may conflict with those of a pod on the same node (see `cluster.attached` for the rule). A
claim with access mode ReadWriteOncePod may be used by one pod in the whole cluster, so while another pod uses it no
node is good; preempting that pod is, so the refusal can be cured.

Surprise: when a dry run adds or removes a pod, only claim names are compared, not namespaces.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from podium.cluster import Cluster, Nodes, PlacedPod
from podium.cluster.attached import inline_disks
from podium.cluster.facts import claims_of
from podium.framework import (
    SKIP,
    Action,
    Cycle,
    DependsOn,
    Interest,
    NodePart,
    Plugin,
    PluginError,
    Resource,
    Status,
    Verdict,
)
from podium.kube import PersistentVolumeClaim, Pod
from podium.kube.claims import not_found

NAME = "VolumeRestrictions"
PRE_FILTER = f"PreFilter{NAME}"
DISK_CONFLICT = Status.unschedulable("node(s) had no available disk")
CLAIM_CONFLICT = Status.unschedulable(
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
READ_WRITE_ONCE_POD = "ReadWriteOncePod"


class _Exclusive:
    """The pod's claims that only one pod may use, and how often others use them."""

    __slots__ = ("names", "uses")

    def __init__(self, names: frozenset[str], uses: int) -> None:
        self.names = names
        self.uses = uses

    def clone(self) -> _Exclusive:
        return _Exclusive(self.names, self.uses)


class _Concerns:
    """Pods wait for the claims they name and the disks they mount, of their own namespace."""

    def of_pod(self, pod: Pod) -> set[Hashable]:
        concerns: set[Hashable] = set(claims_of(pod))
        return concerns.union((pod.namespace, disk.identity) for disk in inline_disks(pod))

    def of_event(self, before: Any, after: Any) -> set[Hashable]:
        """A pod or a claim came or went."""
        changed = before if after is None else after
        return self.of_pod(changed) if isinstance(changed, Pod) else {changed.key}


_CONCERNS = _Concerns()


class VolumeRestrictions(Plugin):
    name = NAME
    trusted = True
    depends_on = DependsOn(node=NodePart.PODS, claims=False)

    def interests(self) -> Iterable[Interest]:
        return [
            Interest(Resource.POD, Action.DELETE, _frees_a_volume, by_signature=True, concerns=_CONCERNS),
            Interest(Resource.NODE, Action.ADD),
            Interest(Resource.PVC, Action.ADD, _is_the_pods_claim, by_signature=True, concerns=_CONCERNS),
        ]

    def answer_key(self, pod: Pod) -> Hashable:
        """The claims that only one pod may use, and their uses elsewhere."""
        names = _claim_names(pod)
        if not names:
            return ()
        exclusive = _exclusive(pod, names, self.handle.cluster)
        return None if isinstance(exclusive, Status) else (exclusive.names, exclusive.uses)

    def pre_filter(self, cycle: Cycle) -> Status | None:
        exclusive = _exclusive(cycle.pod, _claim_names(cycle.pod), cycle.cluster)
        if isinstance(exclusive, Status):
            return exclusive
        if not cycle.facts.disks and not exclusive.uses:
            return SKIP
        cycle.data[PRE_FILTER] = exclusive
        return None

    def add_pod(self, cycle: Cycle, placed: PlacedPod) -> None:
        notes = _notes(cycle)
        notes.uses += _uses(notes, placed.pod)

    def remove_pod(self, cycle: Cycle, placed: PlacedPod) -> None:
        notes = _notes(cycle)
        notes.uses -= _uses(notes, placed.pod)

    def filter(self, cycle: Cycle, nodes: Nodes) -> Verdict | None:
        uses = _notes(cycle).uses
        conflicting = nodes.cluster.disks.conflicting_rows(cycle.facts.disks)
        if not conflicting and uses <= 0:
            return None
        taken = np.zeros(nodes.cluster.columns.rows, dtype=np.bool_)
        taken[list(conflicting)] = True
        everywhere = np.full(len(nodes), uses > 0)
        return Verdict.first_of((nodes.pick(taken), DISK_CONFLICT), (everywhere, CLAIM_CONFLICT))


def _claim_names(pod: Pod) -> list[str]:
    """The claims the pod names; those of ephemeral volumes are never shared and do not count."""
    return [
        volume.persistent_volume_claim.claim_name
        for volume in pod.spec.volumes
        if volume.persistent_volume_claim is not None
    ]


def _exclusive(pod: Pod, claim_names: Iterable[str], cluster: Cluster) -> _Exclusive | Status:
    names: set[str] = set()
    for name in claim_names:
        claim = cluster.objects.claims.get(f"{pod.namespace}/{name}")
        if claim is None:
            return Status.unresolvable(not_found("persistentvolumeclaim", name))
        if READ_WRITE_ONCE_POD in claim.spec.access_modes:
            names.add(name)
    uses = sum(_in_use(cluster, f"{pod.namespace}/{name}") for name in names)
    return _Exclusive(frozenset(names), uses)


def _in_use(cluster: Cluster, claim_key: str) -> bool:
    """Whether a pod on a node that exists uses the claim."""
    return any(cluster.present[row] for row in cluster.claim_rows.get(claim_key, ()))


def _uses(notes: _Exclusive, pod: Pod) -> int:
    return sum(name in notes.names for name in _claim_names(pod))


def _notes(cycle: Cycle) -> _Exclusive:
    notes: _Exclusive | None = cycle.data.get(PRE_FILTER)
    if notes is None:
        raise PluginError(f'cannot read "{PRE_FILTER}" from cycleState')
    return notes


def _frees_a_volume(pod: Pod, before: Pod, _after: Any) -> bool:
    if before.namespace != pod.namespace:
        return False
    freed = inline_disks(before)
    if any(disk.conflicts_with(other) for disk in inline_disks(pod) for other in freed):
        return True
    return not set(_claim_names(pod)).isdisjoint(_claim_names(before))


def _is_the_pods_claim(pod: Pod, _before: Any, claim: PersistentVolumeClaim) -> bool:
    return claim.namespace == pod.namespace and claim.name in _claim_names(pod)
