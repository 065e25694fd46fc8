"""Evicts pods of lower priority for a pod that fits nowhere (DefaultPreemption).

The search looks at a share of the nodes that eviction could help (minCandidateNodesPercentage, but at least
minCandidateNodesAbsolute), from a random start, and evicts on the one node where it hurts least. The pod is then
nominated to that node and tried again when its victims are gone; until the evictions are under way it stays out of
the queue.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from podium.config.feature_gates import Gate
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
from podium.kube import Pod, PodGroup
from podium.kube.pod_group import pod_group_key
from podium.preemption.dry_runs import DryRuns, LowestPriorities
from podium.preemption.evictions import CandidateNodesArgs, Evictions, objection_to_preempting, refused
from podium.preemption.group_victims import Fits, group_victims
from podium.preemption.rules import ByPriority

NAME = "DefaultPreemption"
NO_GROUP = "pod group for pod not found"
BY_PLACEMENT = "not eligible due to placement-based pod group scheduling limitation"
FOR_GROUPS = "not eligible due to workload aware preemption enabled"


class DefaultPreemptionArgs(CandidateNodesArgs, frozen=True):
    """How many nodes are tried."""


class DefaultPreemption(Plugin):
    name = NAME
    trusted = True
    Args = DefaultPreemptionArgs

    def __init__(self, args: DefaultPreemptionArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._evictions = Evictions(NAME, handle)
        self._dry_runs = DryRuns()
        self._lowest = LowestPriorities(handle.cluster)
        self._by_placement = Gate.TOPOLOGY_AWARE in handle.gates
        self._for_groups = Gate.WORKLOAD_AWARE_PREEMPTION in handle.gates

    def interests(self) -> Iterable[Interest]:
        """Evictions only lift the gate; whether the pod fits then is for the plugins that refused it to say."""
        return [Interest(Resource.POD, Action.DELETE, lambda _pod, _before, _after: False, by_signature=True)]

    def pre_enqueue(self, pod: Pod) -> Status | None:
        if self._for_groups and pod.spec.scheduling_group is not None:
            group = self._group_of(pod)
            return None if group is None else self._evictions.hold_back_member(group)
        return self._evictions.hold_back(pod)

    def post_filter(self, cycle: Cycle, diagnosis: Diagnosis) -> PostFilterResult:
        self.handle.timer.preemption_attempted()
        why_not = self._left_to_the_group(cycle.pod) or objection_to_preempting(cycle, diagnosis)
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

    # Members of PodGroups, where gates are on

    def _group_of(self, pod: Pod) -> PodGroup | None:
        key = pod_group_key(pod)
        return None if key is None else self.handle.cluster.objects.pod_groups.get(key)

    def _left_to_the_group(self, pod: Pod) -> str:
        """Why a member may not preempt by itself; "" where it may."""
        if pod.spec.scheduling_group is None:
            return ""
        if self._by_placement:
            group = self._group_of(pod)
            if group is None:
                return NO_GROUP
            if group.spec.scheduling_constraints is not None:
                return BY_PLACEMENT
        return FOR_GROUPS if self._for_groups else ""

    def pod_group_post_filter(self, group: PodGroup, pods: Sequence[Pod], fits: Fits) -> Status | None:
        """Evict for a whole group; None where that is under way, or why it is not."""
        victims = group_victims(self.handle.cluster, group, pods, fits)
        if isinstance(victims, Status):
            return victims
        self._evictions.evict_for_group(group, pods, victims)
        return None
