"""Scores placements of a PodGroup by how full they would be: MostAllocated over the sums of all their nodes.

    score of a resource = 100 × (requested on the nodes + requested by the members) / allocatable
    score               = Σ weight × score / Σ weight       (resources that no node offers are left out)

An extended resource counts only where a member asks for it. The strategy that the profile is configured with does not
matter here; its resources and weights do.
"""

from __future__ import annotations

from collections.abc import Sequence

from podium.cluster import Cluster
from podium.framework import MAX_SCORE
from podium.framework.placements import TriedPlacement
from podium.kube.requests import is_scalar_resource_name, score_requests
from podium.placement.resource_usage import ResourceSpec


def placement_score(cluster: Cluster, resources: Sequence[ResourceSpec], tried: TriedPlacement) -> int:
    requests = [score_requests(pod) for pod in tried.pods]
    rows, columns = tried.placement.rows, cluster.resources
    total = weights = 0
    for spec in resources:
        requested = sum(each.get(spec.name, 0) for each in requests)
        if not requested and is_scalar_resource_name(spec.name):
            continue
        offered = columns.table((spec.name,), offered=True)[0][rows]
        in_use = columns.table((spec.name,), nonzero=True)[0][rows]
        allocatable = int(offered.sum())
        if not allocatable:
            continue
        requested += int(in_use[offered != 0].sum())
        total += min(requested, allocatable) * MAX_SCORE // allocatable * spec.weight
        weights += spec.weight
    return total // weights if weights else 0
