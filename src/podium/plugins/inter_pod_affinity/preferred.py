"""Computes points per domain from preferred terms, of the incoming pod and of pods already placed.

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
from podium.cluster.counts import RowCount
from podium.framework import MAX_SCORE, Scores
from podium.plugins.inter_pod_affinity.incoming import Incoming

DomainPoints = dict[str, NDArray[np.int64]]
"""Topology key → points per number of its label value. Empty if no pod had a say."""


def domain_points(cluster: Cluster, incoming: Incoming, groups: Iterable[TermGroup], hard_weight: int) -> DomainPoints:
    """The points of all domains; `groups` are the placed terms that match the incoming pod."""
    labels = cluster.labels
    opinions: list[tuple[str, int, RowCount]] = [
        (key, weight, cluster.counts.column(query)) for key, weight, query in incoming.preferred
    ]
    for group in groups:
        weight = _weight(group, hard_weight)
        if weight is not None:
            opinions.append((group.term.topology_key, weight, group))
    points: DomainPoints = {}
    for key, weight, tally in opinions:
        if tally.total:
            weighted = tally.sums(labels, key) * weight
            points[key] = points[key] + weighted if key in points else weighted
    if any(by_value.any() for by_value in points.values()):
        return points
    # Either no term applied, or all opinions cancel out; the latter still counts as having scored.
    return {key: points[key] for key, _weight, tally in opinions if tally.total and tally.sums(labels, key).any()}


def raw_scores(points: DomainPoints, nodes: Nodes) -> Scores:
    scores: Scores = np.zeros(len(nodes), dtype=np.int64)
    for key, by_value in points.items():
        scores += by_value.take(nodes.label_ids(key))
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
