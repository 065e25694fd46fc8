"""Evicts pods of lower priority for a pod that fits nowhere (DefaultPreemption).

The search looks at a share of the nodes that eviction could help (minCandidateNodesPercentage, but at least
minCandidateNodesAbsolute), from a random start, and evicts on the one node where it hurts least. The pod is then
nominated to that node and tried again when its victims are gone; until the evictions are under way it stays out of
the queue.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from podium.config.field import FieldError, FieldPath
from podium.framework import (
    Action,
    Code,
    Cycle,
    Diagnosis,
    Handle,
    Interest,
    Plugin,
    PostFilterResult,
    Resource,
    Status,
)
from podium.framework.preemption.dry_runs import DryRuns, LowestPriorities
from podium.framework.preemption.evictions import NEVER, VICTIM_LEAVING, Evictions, nominated_row, refused, was_evicted
from podium.framework.preemption.rules import ByPriority
from podium.kube import Pod

NAME = "DefaultPreemption"


class DefaultPreemptionArgs(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
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


class DefaultPreemption(Plugin):
    name = NAME
    Args = DefaultPreemptionArgs

    def __init__(self, args: DefaultPreemptionArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._evictions = Evictions(NAME, handle)
        self._dry_runs = DryRuns()
        self._lowest = LowestPriorities(handle.cluster)

    def interests(self) -> Iterable[Interest]:
        """Evictions only lift the gate; whether the pod fits then is for the plugins that refused it to say."""
        return [Interest(Resource.POD, Action.DELETE, lambda _pod, _before, _after: False, by_signature=True)]

    def pre_enqueue(self, pod: Pod) -> Status | None:
        return self._evictions.hold_back(pod)

    def post_filter(self, cycle: Cycle, diagnosis: Diagnosis) -> PostFilterResult:
        self.handle.timer.preemption_attempted()
        objection = self._objection(cycle, diagnosis)
        if objection:
            return refused(objection)
        rows = diagnosis.statuses.with_code(Code.UNSCHEDULABLE, cycle.cluster)
        offset = self.handle.rng.randrange(len(rows)) if len(rows) else 0
        fruitless: PostFilterResult | None = diagnosis.notes.get(NAME)
        if fruitless is not None:
            return fruitless
        hopeless = self._lowest.refreshed() >= cycle.pod.priority
        wanted, known = self._wanted(len(rows)), self._dry_runs
        result = self._evictions.make_room(cycle, rows, ByPriority, hopeless, offset=offset, wanted=wanted, known=known)
        if result.nomination is not None and not result.nomination.node_name:
            diagnosis.notes[NAME] = result  # nothing was found, wherever the search begins
        return result

    def _objection(self, cycle: Cycle, diagnosis: Diagnosis) -> str:
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

    def _wanted(self, nodes: int) -> int:
        args: DefaultPreemptionArgs = self.args
        share = nodes * args.min_candidate_nodes_percentage // 100
        return min(nodes, max(share, args.min_candidate_nodes_absolute))
