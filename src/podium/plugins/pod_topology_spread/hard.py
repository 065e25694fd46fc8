"""Refuses nodes on which the pod would make the spread too uneven (DoNotSchedule).

For each constraint, pods are counted per domain over the nodes that count (see `layout`), and a node passes if

    pods in its domain + (1 if the pod matches its own selector) − pods in the emptiest domain ≤ maxSkew.

With fewer domains than minDomains the emptiest counts as 0. A node that lacks the topology key cannot pass. The first
constraint that fails gives the reason.

Adding and removing single pods, for nominated pods and preemption, follows a looser rule than counting: terminating
pods and the pods of an empty selector are added and removed too, so a count may fall below 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster, Nodes, PlacedPod
from podium.framework import Status, Verdict
from podium.kube import Pod
from podium.plugins.pod_topology_spread.constraints import Constraint, Rules
from podium.plugins.pod_topology_spread.layout import Layout, Layouts

UNEVEN_REASON = "node(s) didn't match pod topology spread constraints"
UNEVEN = Status.unschedulable(UNEVEN_REASON)
NO_LABEL = Status.unresolvable(f"{UNEVEN_REASON} (missing required label)")
UNEVEN_CODE, NO_LABEL_CODE = 1, 2

NO_DOMAIN = 2**31 - 1
Counts = NDArray[np.int64]


class ConstraintTally:
    """One constraint with the pods per domain. A tally never changes: `moved` gives a new one."""

    __slots__ = ("_codes", "constraint", "counts", "layout")

    def __init__(self, constraint: Constraint, layout: Layout, counts: Counts) -> None:
        self.constraint = constraint
        self.layout = layout
        self.counts = counts
        self._codes: NDArray[np.int64] | None = None

    def moved(self, row: int, delta: int) -> ConstraintTally:
        """The tally with `delta` more pods on a row."""
        value = int(self.layout.value_of_row[row])
        if not value:
            return self
        counts = self.counts.copy()
        counts[value] += delta
        return ConstraintTally(self.constraint, self.layout, counts)

    @property
    def least(self) -> int:
        """Pods in the emptiest domain, as the constraint sees it."""
        domains = self.layout.domains
        if len(domains) < self.constraint.min_domains:
            return 0
        return int(self.counts.take(domains).min(initial=NO_DOMAIN))

    @property
    def codes(self) -> NDArray[np.int64]:
        """The verdict per number of a label value; entry 0 is that of a node without the label."""
        if self._codes is None:
            most = self.constraint.max_skew + self.least - int(self.constraint.matches_itself)
            self._codes = (self.counts > most) * np.int64(UNEVEN_CODE)
            self._codes[0] = NO_LABEL_CODE
        return self._codes


class HardNotes:
    __slots__ = ("pod", "tallies")

    def __init__(self, pod: Pod, tallies: tuple[ConstraintTally, ...]) -> None:
        self.pod = pod
        self.tallies = tallies

    def clone(self) -> HardNotes:
        return HardNotes(self.pod, self.tallies)

    def adjust(self, placed: PlacedPod, delta: int) -> None:
        """Count one placed pod more (`delta` 1) or less (-1)."""
        if placed.pod.namespace == self.pod.namespace:
            self.tallies = tuple(
                tally.moved(placed.row, delta) if tally.constraint.selector.matches(placed.pod.labels) else tally
                for tally in self.tallies
            )


def hard_notes(pod: Pod, cluster: Cluster, rules: Rules, layouts: Layouts) -> HardNotes:
    tallies = []
    for constraint in rules.constraints:
        layout = layouts.counting(pod, rules, constraint)
        if constraint.query is None:
            counts = np.zeros(layout.values, dtype=np.int64)
        else:
            counts = layout.sums(cluster.counts.column(constraint.query).per_row)
        tallies.append(ConstraintTally(constraint, layout, counts))
    return HardNotes(pod, tuple(tallies))


def verdict(notes: HardNotes, nodes: Nodes) -> Verdict | None:
    codes: NDArray[np.int64] | None = None
    for tally in notes.tallies:
        found: NDArray[np.int64] = tally.codes.take(nodes.label_ids(tally.constraint.topology_key))
        codes = found if codes is None else np.where(codes == 0, found, codes)
    if codes is None or not codes.any():
        return None
    return Verdict(codes, lambda code: NO_LABEL if code == NO_LABEL_CODE else UNEVEN)
