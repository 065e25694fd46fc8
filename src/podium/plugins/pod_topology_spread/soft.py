"""Scores nodes lower whose domains already hold many of the pods to spread (ScheduleAnyway).

    raw = Σ over constraints whose key the node has (pods · ln(domains + 2) + maxSkew − 1), rounded half away from 0

`domains` is the number of domains among the *feasible* nodes, while `pods` are counted on *all* nodes that count (see
`layout`). For the hostname, every node is its own domain: `domains` is the number of feasible nodes, and `pods` are
the node's own, counted whatever the policies say. Normalised, with the smallest and largest raw score:

    100 · (max + min − raw) / max      (100 for all when max is 0)

Feasible nodes that lack one of the keys get 0, except under the system's own default constraints: those are content
with the keys a node has, and count all nodes without a key as one domain.

Also computes the natural logarithm, to the last bit as kube-scheduler has it.

Libraries differ in the last bit of a logarithm (for one argument in a hundred), and a score is rounded to a whole
number after being multiplied by one. So that a tie on the edge never falls the other way, this is the classic
reduction with the classic polynomial: x = 2^k · (1 + f) with √½ < 1 + f < √2, s = f / (2 + f), and

    ln x = k·ln 2 + f − f²/2 + s·(f²/2 + R(s²))

with ln 2 in two parts, each operation rounded to double precision in exactly this order.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster, Mask, Nodes
from podium.framework import MAX_SCORE, Cycle, Scores
from podium.kube import Pod
from podium.plugins.pod_topology_spread.constraints import Constraint, Rules
from podium.plugins.pod_topology_spread.layout import Layout, Layouts

HOSTNAME = "kubernetes.io/hostname"
_JUST_BELOW_HALF = math.nextafter(0.5, 0.0)

Points = NDArray[np.float64]


class Part(NamedTuple):
    """What one constraint adds to a node's raw score."""

    topology_key: str
    points: Points
    """Per number of the label value, 0 for nodes without the label; for the hostname per row."""


class SoftNotes(NamedTuple):
    parts: tuple[Part, ...]
    complete: Layout | None
    """Where all keys are required: its counting rows are the nodes that have them."""


def soft_notes(cycle: Cycle, feasible: Nodes, rules: Rules, layouts: Layouts) -> SoftNotes:
    pod = cycle.pod
    complete = layouts.plain(pod, rules, rules.constraints[0]) if rules.require_all else None
    parts = []
    for constraint in rules.constraints:
        pods = _pods_per_row(cycle.cluster, constraint)
        if constraint.topology_key == HOSTNAME:
            if feasible.bare:
                pods = np.zeros_like(pods)
            ignored = _ignored(complete, feasible)
            domains = len(feasible) - (0 if ignored is None else int(np.count_nonzero(ignored)))
            labelled = cycle.cluster.labels.column(HOSTNAME).ids != 0
            points = _points(pods, domains, constraint) * labelled
        else:
            domains = _domains(pod, feasible, rules, constraint, layouts)
            points = _points(layouts.counting(pod, rules, constraint).sums(pods), domains, constraint)
            points[0] = 0.0
        parts.append(Part(constraint.topology_key, points))
    return SoftNotes(tuple(parts), complete)


def raw_scores(notes: SoftNotes, nodes: Nodes) -> Scores:
    total: Points = np.zeros(len(nodes), dtype=np.float64)
    for key, points in notes.parts:
        total += nodes.pick(points) if key == HOSTNAME else points.take(nodes.label_ids(key))
    scores = rounded(total)
    ignored = _ignored(notes.complete, nodes)
    if ignored is not None:
        scores[ignored] = 0
    return scores


def normalized(notes: SoftNotes, nodes: Nodes, scores: Scores) -> Scores:
    ignored = _ignored(notes.complete, nodes)
    judged = scores if ignored is None else scores[~ignored]
    if not len(judged):
        return np.zeros_like(scores)
    lowest, highest = int(judged.min()), int(judged.max())
    answer = MAX_SCORE * (highest + lowest - scores) // highest if highest else np.full_like(scores, MAX_SCORE)
    if ignored is not None:
        answer[ignored] = 0
    return answer


def rounded(numbers: Points) -> Scores:
    """The nearest whole numbers of numbers that are not negative; a half goes up.

    What is added before cutting off is the number just below a half: with a half itself, 0.49999999999999994 would
    become 1.

    >>> rounded(np.array([0.5, 0.49999999999999994, 2.5])).tolist()
    [1, 0, 3]
    """
    return (numbers + _JUST_BELOW_HALF).astype(np.int64)


def _points(pods: NDArray[np.int64], domains: int, constraint: Constraint) -> Points:
    points: Points = pods * np.float64(natural_logarithm(float(domains + 2)))
    points += float(constraint.max_skew - 1)
    return points


def _ignored(complete: Layout | None, nodes: Nodes) -> Mask | None:
    """Which nodes get no points for want of a topology key; None when all have what it takes."""
    if complete is None:
        return None
    ignored: Mask = nodes.pick(complete.value_of_row) == 0
    return ignored if ignored.any() else None


def _domains(pod: Pod, feasible: Nodes, rules: Rules, constraint: Constraint, layouts: Layouts) -> int:
    """How many domains the feasible nodes are in."""
    layout = layouts.plain(pod, rules, constraint)
    nodes_in = np.bincount(feasible.pick(layout.value_of_row), minlength=1)
    if rules.require_all:
        nodes_in[0] = 0
    return int(np.count_nonzero(nodes_in))


def _pods_per_row(cluster: Cluster, constraint: Constraint) -> NDArray[np.int64]:
    if constraint.query is None:
        return np.zeros(cluster.columns.rows, dtype=np.int64)
    return cluster.counts.column(constraint.query).per_row


_LN2_HIGH = float.fromhex("0x1.62e42feep-1")
_LN2_LOW = float.fromhex("0x1.a39ef35793c76p-33")
_R1 = 6.666666666666735130e-01
_R2 = 3.999999999940941908e-01
_R3 = 2.857142874366239149e-01
_R4 = 2.222219843214978396e-01
_R5 = 1.818357216161805012e-01
_R6 = 1.531383769920937332e-01
_R7 = 1.479819860511658591e-01


def natural_logarithm(x: float) -> float:
    """ln x for a positive, finite x.

    >>> natural_logarithm(1.0), natural_logarithm(4.0)
    (0.0, 1.3862943611198906)
    """
    fraction, exponent = math.frexp(x)
    if fraction < math.sqrt(0.5):
        fraction *= 2
        exponent -= 1
    f, k = fraction - 1, float(exponent)
    s = f / (2 + f)
    s2 = s * s
    s4 = s2 * s2
    odd = s2 * (_R1 + s4 * (_R3 + s4 * (_R5 + s4 * _R7)))
    even = s4 * (_R2 + s4 * (_R4 + s4 * _R6))
    half_square = 0.5 * f * f
    return k * _LN2_HIGH - ((half_square - (s * (half_square + (odd + even)) + k * _LN2_LOW)) - f)
