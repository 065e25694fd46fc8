"""ScheduleAnyway: nodes in domains that already hold many of the pods to spread get fewer points.

    raw = Σ over constraints whose key the node has (pods · ln(domains + 2) + maxSkew − 1), rounded half away from 0

`domains` is the number of domains among the *feasible* nodes, while `pods` are counted on *all* nodes that count (see
`layout`). For the hostname, every node is its own domain: `domains` is the number of feasible nodes, and `pods` are
the node's own, counted whatever the policies say. Normalised, with the smallest and largest raw score:

    100 · (max + min − raw) / max      (100 for all when max is 0)

Feasible nodes that lack one of the keys get 0, except under the system's own default constraints: those are content
with the keys a node has, and count all nodes without a key as one domain.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster, Mask, Nodes
from podium.framework import MAX_SCORE, Cycle, Scores
from podium.kube import Pod
from podium.plugins.pod_topology_spread.layout import Layout, Layouts
from podium.plugins.pod_topology_spread.logarithm import natural_logarithm
from podium.plugins.pod_topology_spread.rules import Constraint, Rules

HOSTNAME = "kubernetes.io/hostname"

Points = NDArray[np.float64]


class Part(NamedTuple):
    """What one constraint adds to a node's raw score."""

    topology_key: str
    points: Points
    """Per number of the label value, or for the hostname per row."""


class SoftNotes(NamedTuple):
    parts: tuple[Part, ...]
    complete: Layout | None
    """Where all keys are required: its counting rows are the nodes that have them."""


def soft_notes(cycle: Cycle, feasible: Nodes, rules: Rules, layouts: Layouts) -> SoftNotes:
    pod = cycle.pod
    complete = layouts.plain(pod, rules, rules.constraints[0]) if rules.require_all else None
    parts = []
    for constraint in rules.constraints:
        if constraint.topology_key == HOSTNAME:
            pods = _pods_per_row(cycle.cluster, constraint)
            domains = len(feasible) - int(_ignored(complete, feasible).sum())
        else:
            pods = layouts.counting(pod, rules, constraint).sums(_pods_per_row(cycle.cluster, constraint))
            domains = _domains(pod, feasible, rules, constraint, layouts)
        weight = natural_logarithm(float(domains + 2))
        points: Points = pods.astype(np.float64) * weight + float(constraint.max_skew - 1)
        parts.append(Part(constraint.topology_key, points))
    return SoftNotes(tuple(parts), complete)


def raw_scores(notes: SoftNotes, nodes: Nodes) -> Scores:
    total: Points = np.zeros(len(nodes), dtype=np.float64)
    for part in notes.parts:
        values = nodes.label_ids(part.topology_key)
        points = nodes.pick(part.points) if part.topology_key == HOSTNAME else part.points.take(values)
        total += np.where(values != 0, points, 0.0)
    scores = round_half_away(total)
    scores[_ignored(notes.complete, nodes)] = 0
    return scores


def normalized(notes: SoftNotes, nodes: Nodes, scores: Scores) -> Scores:
    ignored = _ignored(notes.complete, nodes)
    judged = scores[~ignored]
    if not len(judged):
        return np.zeros_like(scores)
    lowest, highest = int(judged.min()), int(judged.max())
    answer = MAX_SCORE * (highest + lowest - scores) // highest if highest else np.full_like(scores, MAX_SCORE)
    answer[ignored] = 0
    return answer


def round_half_away(numbers: Points) -> Scores:
    """Whole numbers nearest to numbers that are not negative; a half goes up.

    >>> round_half_away(np.array([0.5, 0.49999999999999994, 2.5])).tolist()
    [1, 0, 3]
    """
    floor = np.floor(numbers)
    return (floor + (numbers - floor >= 0.5)).astype(np.int64)


def _ignored(complete: Layout | None, nodes: Nodes) -> Mask:
    """Which nodes get no points for want of a topology key."""
    if complete is None:
        return np.zeros(len(nodes), dtype=np.bool_)
    ignored: Mask = nodes.pick(complete.value_of_row) == 0
    return ignored


def _domains(pod: Pod, feasible: Nodes, rules: Rules, constraint: Constraint, layouts: Layouts) -> int:
    """How many domains the feasible nodes are in."""
    layout = layouts.plain(pod, rules, constraint)
    seen = np.zeros(layout.values, dtype=np.bool_)
    seen[feasible.pick(layout.value_of_row)] = True
    if rules.require_all:
        seen[0] = False
    return int(np.count_nonzero(seen))


def _pods_per_row(cluster: Cluster, constraint: Constraint) -> NDArray[np.int64]:
    if constraint.query is None:
        return np.zeros(cluster.columns.rows, dtype=np.int64)
    return cluster.counts.column(constraint.query).per_row
