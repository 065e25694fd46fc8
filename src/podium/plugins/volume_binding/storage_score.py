"""Scores nodes by how much of their storage the pod's delayed claims would use (gate StorageCapacityScoring).

On each node either volumes that exist are counted, if the pod gets at least one there, or the storage that is left for
new ones. Per storage class

    utilization = 100·requested/capacity, toward zero; 100 where more is requested than there is, or there is none
    score       = shape(utilization)

and the node's score is the mean over the classes, rounded to the nearest, halves up. Existing volumes add up their
sizes; new ones of one class share what their pool has left. A node where nothing is counted scores 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kubecel.quantity import units
from podium.cluster import Cluster, Nodes
from podium.framework import Scores
from podium.kube import PersistentVolume, PersistentVolumeClaim
from podium.kube.claims import SELECTED_NODE
from podium.placement.shape import MAX_UTILIZATION, Shape, UtilizationShapePoint
from podium.plugins.volume_binding.matching import VolumePicker, matchable_claims
from podium.plugins.volume_binding.search import reports_capacity

DEFAULT_SHAPE = (UtilizationShapePoint(utilization=0, score=10), UtilizationShapePoint(utilization=100, score=0))
"""An empty node is best."""

STORAGE = "storage"


def storage_scores(
    delayed: Sequence[PersistentVolumeClaim], cluster: Cluster, nodes: Nodes, shape: Shape
) -> Scores | int:
    """The score of each node."""
    placed = [claim for claim in delayed if SELECTED_NODE in claim.annotations]
    wanted = matchable_claims([claim for claim in delayed if SELECTED_NODE not in claim.annotations], cluster)
    picker, makes_from = VolumePicker(wanted, cluster), _Provisions(cluster)
    has_volumes = picker.finds_some
    if not has_volumes and not any(map(makes_from.known, delayed)):
        return 0
    scores: Scores = np.zeros(len(nodes), dtype=np.int64)
    for position, row in enumerate(nodes.rows.tolist()):
        node = cluster.nodes[row]
        if node is None:
            continue
        volumes = picker.at(node.labels) if has_volumes else [None] * len(wanted)
        existing = [(each.claim, volume) for each, volume in zip(wanted, volumes, strict=True) if volume is not None]
        if existing:
            uses = _of_existing(existing)
        else:
            uses = makes_from.at(node.labels, [*placed, *(each.claim for each in wanted)])
        scores[position] = _score(uses, shape)
    return scores


Uses = dict[str, tuple[int, int]]
"""Storage class → bytes requested and bytes there are."""


def _of_existing(pairs: Sequence[tuple[PersistentVolumeClaim, PersistentVolume]]) -> Uses:
    uses: Uses = {}
    for claim, volume in pairs:
        requested, capacity = uses.get(volume.storage_class_name, (0, 0))
        size = units(volume.spec.capacity.get(STORAGE, 0))
        uses[volume.storage_class_name] = requested + _requested(claim), capacity + size
    return uses


def _requested(claim: PersistentVolumeClaim) -> int:
    return units(claim.spec.resources.requests.get(STORAGE, 0))


class _Provisions:
    """What new volumes would use of the storage that drivers report."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def known(self, claim: PersistentVolumeClaim) -> bool:
        """Whether a driver reports how much storage there is for such a claim."""
        storage_class = self._cluster.objects.storage_classes.get(claim.storage_class_name)
        return (
            storage_class is not None
            and claim.spec.resources.requests.get(STORAGE) is not None
            and reports_capacity(storage_class.provisioner, self._cluster)
        )

    def at(self, labels: dict[str, str], claims: Sequence[PersistentVolumeClaim]) -> Uses:
        uses: Uses = {}
        for claim in filter(self.known, claims):
            name, size = claim.storage_class_name, _requested(claim)
            pools = self._cluster.storage_pools.of_class(name)
            pool = next((pool for pool in pools.at(labels) if pool.limit >= size), None)
            if pool is not None:
                uses[name] = uses.get(name, (0, 0))[0] + size, pool.capacity
        return uses


def _score(uses: Uses, shape: Shape) -> int:
    if not uses:
        return 0
    total = 0
    for requested, capacity in uses.values():
        full = capacity == 0 or requested > capacity
        total += shape.at(MAX_UTILIZATION if full else requested * MAX_UTILIZATION // capacity)
    return (2 * total + len(uses)) // (2 * len(uses))
