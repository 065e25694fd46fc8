"""Says what plugins that evict by priority have in common: who may preempt now, and how many nodes are tried.

A share of the nodes that eviction could help is tried (minCandidateNodesPercentage, but at least
minCandidateNodesAbsolute), from a random start.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from podium.config.field import FieldError, FieldPath
from podium.framework.cycle import Cycle
from podium.framework.diagnosis import Diagnosis
from podium.preemption.evictions import NEVER, VICTIM_LEAVING, nominated_row, was_evicted


class CandidateNodesArgs(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    """How many nodes are tried."""

    min_candidate_nodes_percentage: int = 10
    min_candidate_nodes_absolute: int = 100

    def validate(self, path: FieldPath) -> Iterable[FieldError]:
        percentage, absolute = self.min_candidate_nodes_percentage, self.min_candidate_nodes_absolute
        percentage_path = path.child("minCandidateNodesPercentage")
        absolute_path = path.child("minCandidateNodesAbsolute")
        if not 0 <= percentage <= 100:
            yield FieldError.invalid(percentage_path, percentage, "not in valid range [0, 100]")
        if absolute < 0:
            yield FieldError.invalid(absolute_path, absolute, "not in valid range [0, inf)")
        if percentage == 0 and absolute == 0:
            for here, other in ((percentage_path, absolute_path), (absolute_path, percentage_path)):
                yield FieldError.invalid(here, 0, f"cannot be zero at the same time as {other.steps[-1]}")

    def wanted(self, nodes: int) -> int:
        """How many candidates are enough, of so many nodes."""
        share = nodes * self.min_candidate_nodes_percentage // 100
        return min(nodes, max(share, self.min_candidate_nodes_absolute))


def objection(cycle: Cycle, diagnosis: Diagnosis) -> str:
    """Why the pod may not evict others now; "" when it may."""
    pod = cycle.pod
    if pod.spec.preemption_policy == "Never":
        return NEVER
    row = nominated_row(cycle, diagnosis)
    if row is None:
        return ""
    there = cycle.cluster.pods_on[row].values()
    leaving = any(placed.pod.priority < pod.priority and was_evicted(placed.pod) for placed in there)
    return VICTIM_LEAVING if leaving else ""
