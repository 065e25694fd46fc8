"""Bounds what namespaces use by elastic quotas, and evicts pods to give guaranteed room back (CapacityScheduling).

    preFilter    rejects a pod that its namespace's max, or the sum of all min, leaves no room for
    postFilter   makes room inside the quota first; a namespace within its min reclaims what others have borrowed

What is used is counted from the pods that have a node (`ledger`); nothing is noted at Reserve. Enable it in place of
DefaultPreemption at postFilter, or that evicts by priority first, whatever the quotas say.

Surprise: the answer key is the answer itself. Placing a pod changes what is used, but as long as the quotas let pods of
a kind come, the answers about all nodes hold.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from typing import Any, Final

from podium import Action, Cycle, DependsOn, Diagnosis, Handle, Interest, Plugin, PostFilterResult, Resource, Status
from podium.cluster import Mask, PlacedPod
from podium.kube import Pod
from podium.preemption import (
    ByPriority,
    Evictions,
    LowestPriorities,
    Ruling,
    objection_to_preempting,
    refused,
    unschedulable_rows,
)
from podium_plugins.capacity_scheduling.admission import QuotaAnswer, QuotaDemand, answer
from podium_plugins.capacity_scheduling.ledger import QuotaLedger
from podium_plugins.capacity_scheduling.quota import RESOURCE
from podium_plugins.capacity_scheduling.raised import raised, sentences, shortages
from podium_plugins.capacity_scheduling.rule import WithinQuotas, rows_without_victims
from podium_plugins.capacity_scheduling.standing import standing

NAME: Final = "CapacityScheduling"


class CapacityScheduling(Plugin):
    name = NAME
    trusted = True
    depends_on = DependsOn(claims=False, kinds=())
    resources = (f"{RESOURCE}/v1alpha1",)

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        self._ledger = QuotaLedger.of(handle.cluster, handle.problems)
        self._evictions = Evictions(NAME, handle)
        self._lowest = LowestPriorities(handle.cluster)

    def interests(self) -> Iterable[Interest]:
        return [
            Interest(Resource.POD, Action.DELETE | Action.UPDATE_POD_SCALE_DOWN, self._may_free, by_signature=True),
            Interest(RESOURCE, Action.ALL, _quota_changed, by_signature=True),
        ]

    def _may_free(self, pod: Pod, before: Pod | None, after: Pod | None) -> bool:
        """Whether a pod that went, or asks for less, counted for a quota."""
        other = before if after is None else after
        return other is not None and not self._ledger.is_free(other.namespace)

    def pre_enqueue(self, pod: Pod) -> Status | None:
        return self._evictions.hold_back(pod)

    # Whether the quotas leave room

    def pre_filter(self, cycle: Cycle) -> Status | None:
        pod = cycle.pod
        found = self._answer(pod)
        if found is QuotaAnswer.OVER_MAX:
            return _rejected(pod, f"ElasticQuota {pod.namespace} is more than Max")
        if found is QuotaAnswer.OVER_TOTAL:
            return _rejected(pod, "total ElasticQuota used is more than min")
        quota = self._ledger.unusable(pod.namespace) if found is QuotaAnswer.UNUSABLE else None
        if quota is not None:
            return Status.unresolvable(f"ElasticQuota {quota.key} cannot be used: {quota.problem}")
        return None

    def answer_key(self, pod: Pod) -> Hashable:
        return self._answer(pod)

    def _answer(self, pod: Pod) -> QuotaAnswer:
        demand = self._demand(pod)
        if demand is not None:
            return answer(self._ledger, demand)
        return QuotaAnswer.NO_QUOTA if self._ledger.unusable(pod.namespace) is None else QuotaAnswer.UNUSABLE

    def _demand(self, pod: Pod) -> QuotaDemand | None:
        """What the pod needs of the quotas; None where its namespace has none."""
        use, handle = self._ledger.use(pod.metadata.namespace), self.handle
        if use is None or use.quota is None:
            return None
        return QuotaDemand(handle.cluster, self._ledger, handle.nominator, pod, use, use.quota)

    def explain(self, pod: Pod) -> list[str]:
        """How the quotas stand, where they are what keeps the pod waiting."""
        demand = self._demand(pod)
        if demand is None or answer(self._ledger, demand) is QuotaAnswer.WITHIN:
            return []
        return standing(self._ledger, pod.namespace, demand)

    def grants(self, pod: Pod) -> list[tuple[str, str, Any, list[str]]]:
        """The pod's quota with bounds that would let it come."""
        demand = self._demand(pod)
        short = {} if demand is None else shortages(self._ledger, demand)
        if demand is None or not short:
            return []
        item = self.handle.cluster.objects.custom_store(RESOURCE).get(demand.quota.key)
        if item is None:
            return []
        return [(RESOURCE, demand.quota.key, raised(item, demand, short), sentences(demand, short))]

    # Making room

    def post_filter(self, cycle: Cycle, diagnosis: Diagnosis) -> PostFilterResult:
        self.handle.timer.preemption_attempted()
        pod, ledger = cycle.pod, self._ledger
        demand = self._demand(pod)
        borrows = demand is not None and demand.borrows

        def makes_room(other: Pod) -> bool:
            return other.terminating and self._makes_room(other, pod, demand, borrows)

        objection = objection_to_preempting(cycle, diagnosis, makes_room)
        if objection:
            return refused(objection)
        rows = unschedulable_rows(cycle, diagnosis)
        hopeless: Mask
        if demand is None:
            hopeless = self._lowest.hopeless(pod)
        else:
            hopeless = rows_without_victims(cycle.cluster, ledger, demand, borrows, pod)

        def rule(pods: Collection[PlacedPod], preemptor: Pod) -> Ruling:
            if demand is None:
                return ByPriority([each for each in pods if ledger.is_free(each.pod.namespace)], preemptor)
            return WithinQuotas(ledger, demand, borrows, pods, preemptor)

        return self._evictions.make_room(cycle, rows, rule, hopeless, offset=0, wanted=len(rows), known=None)

    def _makes_room(self, other: Pod, pod: Pod, demand: QuotaDemand | None, borrows: bool) -> bool:
        """Whether the end of another pod on the node makes room for this one."""
        use, lower = self._ledger.use(other.namespace), other.priority < pod.priority
        if demand is None:
            return lower and self._ledger.is_free(other.namespace)
        if use is demand.use:
            return lower
        return use is not None and not borrows and use.over_min()


def _rejected(pod: Pod, why: str) -> Status:
    return Status.unschedulable(f"Pod {pod.key} is rejected in PreFilter because {why}")


def _quota_changed(_pod: Pod, before: Any, after: Any) -> bool:
    """Whether a quota came, went, or bounds something else: its status means nothing."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return True
    return bool(before.get("spec") != after.get("spec"))
