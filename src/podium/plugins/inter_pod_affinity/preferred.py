"""What would be nice: points per domain from preferred terms, of the incoming pod and of pods already placed.

For every placed pod on a node that has the term's topology key, the node's domain gets

    +w / −w   for each preferred affinity / anti-affinity term of the incoming pod that the placed pod matches,
    +w / −w   for each preferred affinity / anti-affinity term of the placed pod that the incoming pod matches,
    +hard     for each required affinity term of the placed pod that the incoming pod matches,

and a node's raw score is the sum over its domains. Normalising spreads the raw scores of the feasible nodes over
0–100: ⌊100 · ((s − min) / (max − min))⌋, divided first and in floating point, so 29 of 100 gives 28. Terminating pods
count.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster, Nodes, TermGroup, TermKind
from podium.framework import MAX_SCORE, Scores
from podium.plugins.inter_pod_affinity.incoming import Incoming

DomainPoints = dict[str, NDArray[np.int64]]
"""Topology key → points per number of its label value. A key stands here only if some pod had a say about it."""


def domain_points(cluster: Cluster, incoming: Incoming, groups: Iterable[TermGroup], hard_weight: int) -> DomainPoints:
    """The points of all domains; `groups` are the placed terms that match the incoming pod."""
    points: DomainPoints = {}
    for key, weight, query in incoming.wishes:
        column = cluster.counts.column(query)
        if column.total:
            _add(points, cluster, key, weight, column.per_row)
    for group in groups:
        opinion = _weight(group, hard_weight)
        if opinion is not None:
            _add(points, cluster, group.term.topology_key, opinion, group.per_row)
    return points


def raw_scores(points: DomainPoints, nodes: Nodes) -> Scores:
    scores: Scores = np.zeros(len(nodes), dtype=np.int64)
    for key, by_value in points.items():
        scores += by_value[nodes.label_ids(key)]
    return scores


def spread_out(scores: Scores) -> Scores:
    """The raw scores over 0–100; all 0 when they are all equal."""
    if not len(scores):
        return scores
    lowest = int(scores.min())
    span = int(scores.max()) - lowest
    if not span:
        return np.zeros_like(scores)
    shares: Scores = (MAX_SCORE * ((scores - lowest) / span)).astype(np.int64)
    return shares


def _weight(group: TermGroup, hard_weight: int) -> int | None:
    """What one holder of the term adds; None for terms that take no part in scoring."""
    match group.term.kind:
        case TermKind.PREFERRED_AFFINITY:
            return group.term.weight
        case TermKind.PREFERRED_ANTI_AFFINITY:
            return -group.term.weight
        case TermKind.REQUIRED_AFFINITY if hard_weight > 0:
            return hard_weight
    return None


def _add(points: DomainPoints, cluster: Cluster, key: str, weight: int, per_row: NDArray[np.int64]) -> None:
    pods = cluster.labels.column(key).sums(per_row)
    if not pods.any():
        return
    known = points.get(key)
    points[key] = pods * weight if known is None else known + pods * weight
