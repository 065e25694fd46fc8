"""Evicts pods of lower priority for a pod that fits nowhere (DefaultPreemption).

The search looks at a share of the nodes that eviction could help (minCandidateNodesPercentage, but at least
minCandidateNodesAbsolute), from a random start, and evicts on the one node where it hurts least. The pod is then
nominated to that node and tried again when its victims are gone; until the evictions are under way it stays out of
the queue.
"""

from __future__ import annotations

from collections.abc import Iterable

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
from podium.framework.preemption.by_priority import CandidateNodesArgs, objection
from podium.framework.preemption.dry_runs import DryRuns, LowestPriorities
from podium.framework.preemption.evictions import Evictions, refused
from podium.framework.preemption.rules import ByPriority
from podium.kube import Pod

NAME = "DefaultPreemption"


class DefaultPreemptionArgs(CandidateNodesArgs, frozen=True):
    """How many nodes are tried."""


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
        why_not = objection(cycle, diagnosis)
        if why_not:
            return refused(why_not)
        rows = diagnosis.statuses.with_code(Code.UNSCHEDULABLE, cycle.cluster)
        offset = self.handle.rng.randrange(len(rows)) if len(rows) else 0
        fruitless: PostFilterResult | None = diagnosis.notes.get(NAME)
        if fruitless is not None:
            return fruitless
        hopeless = self._lowest.refreshed() >= cycle.pod.priority
        wanted, known = self.args.wanted(len(rows)), self._dry_runs
        result = self._evictions.make_room(cycle, rows, ByPriority, hopeless, offset=offset, wanted=wanted, known=known)
        if result.nomination is not None and not result.nomination.node_name:
            diagnosis.notes[NAME] = result  # nothing was found, wherever the search begins
        return result
