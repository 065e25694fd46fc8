"""Evicts pods of lower priority on as many nodes as it takes for a pod to fit on one of them (CrossNodePreemption).

DefaultPreemption looks at one node at a time: a pod that another in its zone, on another node, keeps away by
anti-affinity or spreading finds no victims. Here pods on all nodes may be evicted (`search`); what is found competes
with what one node alone would need, by the usual rules. Where no filter looks beyond a node, evicting elsewhere cannot
help and is not tried. Disruption budgets are never broken.

Enable it in addition to DefaultPreemption, behind it: then it is asked where eviction on one node does not help. Or in
its place: then no eviction breaks a budget.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from podium import Cycle, Diagnosis, Handle, Interest, Plugin, PostFilterResult, Status
from podium.kube import Pod
from podium.preemption import (
    VICTIM_GONE,
    ByPriority,
    Candidate,
    Evictions,
    LowestPriorities,
    PreemptionSearch,
    find_candidates,
    fruitless,
    no_candidates_message,
    objection_to_preempting,
    refused,
    unschedulable_rows,
)
from podium_plugins.cross_node_preemption.search import CrossNodePreemptionArgs, find_across_nodes

NAME: Final = "CrossNodePreemption"
WOULD_BREAK_A_BUDGET: Final = "every candidate would break a disruption budget"


class CrossNodePreemption(Plugin):
    name = NAME
    trusted = True
    Args = CrossNodePreemptionArgs

    def __init__(self, args: CrossNodePreemptionArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._evictions = Evictions(NAME, handle)
        self._lowest = LowestPriorities(handle.cluster)

    def interests(self) -> Iterable[Interest]:
        return [VICTIM_GONE]

    def pre_enqueue(self, pod: Pod) -> Status | None:
        return self._evictions.hold_back(pod)

    def post_filter(self, cycle: Cycle, diagnosis: Diagnosis) -> PostFilterResult:
        self.handle.timer.preemption_attempted()
        why_not = objection_to_preempting(cycle, diagnosis)
        if why_not:
            return refused(why_not)
        on_one, search = self._on_one_node(cycle, diagnosis)
        rows = unschedulable_rows(cycle, diagnosis)
        across = None
        if self.handle.runtime.active_filters(cycle).beyond_rows:
            across = find_across_nodes(self.handle, cycle, rows.tolist(), self.args)
        found = [each for each in (on_one, across) if each is not None]
        if found:
            return self._evictions.evict(cycle, min(found, key=lambda each: each.harm))
        if search.best:
            return fruitless(WOULD_BREAK_A_BUDGET)
        return fruitless(no_candidates_message(cycle.cluster, search))

    def _on_one_node(self, cycle: Cycle, diagnosis: Diagnosis) -> tuple[Candidate | None, PreemptionSearch]:
        """The node that would take the pod if only pods there were evicted and no budget broken."""
        rows = unschedulable_rows(cycle, diagnosis)[: self.args.max_nodes]
        hopeless = self._lowest.hopeless(cycle.pod)
        wanted = len(rows)
        search = find_candidates(self.handle.runtime, cycle, rows, ByPriority, hopeless, 0, wanted, None)
        best = search.best[0] if search.best else None
        return (best if best is not None and not best.harm.violations else None), search
