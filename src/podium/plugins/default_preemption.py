"""Evicts pods of lower priority for a pod that fits nowhere (DefaultPreemption).

The search looks at a share of the nodes that eviction could help (minCandidateNodesPercentage, but at least
minCandidateNodesAbsolute), from a random start, and evicts on the one node where it hurts least. The pod is then
nominated to that node and tried again when its victims are gone; until the evictions are under way it stays out of
the queue.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np

from podium.config.feature_gates import Gate
from podium.framework import (
    Cycle,
    Diagnosis,
    Handle,
    Interest,
    Plugin,
    PostFilterResult,
    Status,
)
from podium.framework.gang import GroupFit, GroupRoom
from podium.kube import Pod, PodGroup
from podium.kube.pod_group import pod_group_key
from podium.preemption.dry_runs import DryRuns, LowestPriorities
from podium.preemption.evictions import (
    VICTIM_GONE,
    CandidateNodesArgs,
    Evictions,
    objection_to_preempting,
    random_start,
    refused,
    unschedulable_rows,
    was_evicted,
)
from podium.preemption.group_victims import WholeGroups, group_victims, victim_priority
from podium.preemption.rules import ByPriority, ByPriorityInOrder

NAME = "DefaultPreemption"
NO_GROUP = "pod group for pod not found"
BY_PLACEMENT = "not eligible due to placement-based pod group scheduling limitation"
FOR_A_GROUP = "pod group preemption: "
UNDER_WAY = "ongoing preemption on nominated nodes"
GROUP_PLACEMENT = "found a placement for podgroup"
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
        self._rule = ByPriorityInOrder if handle.rules.unstarted_victims_keep_their_order else ByPriority
        self._by_placement = Gate.TOPOLOGY_AWARE in handle.gates
        self._for_groups = Gate.WORKLOAD_AWARE_PREEMPTION in handle.gates
        self._group_victims = Gate.GENERIC_WORKLOAD in handle.gates and handle.rules.pod_groups_are_victims

    def interests(self) -> Iterable[Interest]:
        return [VICTIM_GONE]

    def pre_enqueue(self, pod: Pod) -> Status | None:
        if self._for_groups and pod.spec.scheduling_group is not None:
            group = self._group_of(pod)
            return None if group is None else self._evictions.hold_back_member(group)
        return self._evictions.hold_back(pod)

    def post_filter(self, cycle: Cycle, diagnosis: Diagnosis) -> PostFilterResult:
        self.handle.timer.preemption_attempted()
        with_groups = self._group_victims and len(cycle.cluster.objects.pod_groups) > 0
        makes_room = partial(self._makes_room, cycle.pod) if with_groups else None
        why_not = self._left_to_the_group(cycle.pod) or objection_to_preempting(cycle, diagnosis, makes_room)
        if why_not:
            return refused(why_not)
        rows = unschedulable_rows(cycle, diagnosis)
        offset = random_start(self.handle, rows)
        fruitless: PostFilterResult | None = diagnosis.notes.get(NAME)
        if fruitless is not None:
            return fruitless
        wanted = self.args.wanted(len(rows))
        if with_groups:  # which may have another priority than their pods, and stand on other nodes as well
            hopeless = np.zeros(cycle.cluster.columns.rows, dtype=np.bool_)
            return self._evictions.make_room(
                cycle, rows, WholeGroups(), hopeless, offset=offset, wanted=wanted, known=None
            )
        hopeless, known = self._lowest.hopeless(cycle.pod), self._dry_runs
        result = self._evictions.make_room(cycle, rows, self._rule, hopeless, offset=offset, wanted=wanted, known=known)
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

    def _makes_room(self, preemptor: Pod, other: Pod) -> bool:
        return was_evicted(other) and victim_priority(self.handle.cluster, other) < preemptor.priority

    def pod_group_post_filter(self, group: PodGroup, pods: Sequence[Pod], fit: GroupFit) -> GroupRoom:
        """Evict for a whole group."""
        once = self.handle.rules.pod_groups_are_queued
        if once and self._is_under_way(group, pods):
            nominated = {pod.uid: pod.status.nominated_node_name for pod in pods}
            return GroupRoom(None, f"{FOR_A_GROUP}{UNDER_WAY}", nominated)
        victims = group_victims(self.handle.cluster, group, pods, fit, once=once)
        if isinstance(victims, Status):
            message = f"{FOR_A_GROUP}{victims.message}" if once else victims.message
            return GroupRoom(Status(victims.code, (message,)))
        self._evictions.evict_for_group(group, pods, victims)
        if not once:
            return GroupRoom(None)
        return GroupRoom(None, f"{FOR_A_GROUP}{GROUP_PLACEMENT}, preempting {len(victims)} victims", fit.nodes)

    def _is_under_way(self, group: PodGroup, pods: Sequence[Pod]) -> bool:
        """Whether victims are still leaving nodes that members are nominated to."""
        if any(pod.spec.preemption_policy == "Never" for pod in pods):
            return False
        cluster = self.handle.cluster
        rows = {cluster.row_of.get(pod.status.nominated_node_name) for pod in pods} - {None}
        there = (placed.pod for row in rows if row is not None for placed in cluster.pods_on[row].values())
        return any(was_evicted(pod) and victim_priority(cluster, pod) < group.priority for pod in there)
