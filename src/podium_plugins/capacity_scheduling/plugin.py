"""Bounds what namespaces use by elastic quotas, and evicts pods to give guaranteed room back (CapacityScheduling).

    preFilter    rejects a pod that its namespace's max, or the sum of all min, leaves no room for
    postFilter   makes room inside the quota first; a namespace within its min reclaims what others have borrowed

What is used is counted from the pods that have a node (`ledger`); nothing is noted at Reserve. Enable it in place of
DefaultPreemption at postFilter, or that evicts by priority first, whatever the quotas say.

Surprise: the answer key is the answer itself. Placing a pod changes what is used, but as long as the quotas let pods of
a kind come, the answers about all nodes hold.

Who may be evicted for a pod is ruled by the quotas:

    the preemptor has                 evictable are
    a quota, and would borrow         pods of its own namespace of lower priority
    a quota, and stays within min     pods of other namespaces that are over their min, whatever their priority; the
                                      least important go first, and none once its namespace is within its min
    no quota                          pods of lower priority in namespaces without a quota

A pod may stay if, with it, the preemptor's namespace is not over max and all quotas are not over the sum of min.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from podium import Action, Cycle, DependsOn, Diagnosis, Handle, Interest, Plugin, PostFilterResult, Resource, Status
from podium.cluster import Cluster, Mask, PlacedPod
from podium.kube import Pod
from podium.preemption import (
    ByPriority,
    Evictions,
    LowestPriorities,
    Ruling,
    by_importance,
    objection_to_preempting,
    refused,
    unschedulable_rows,
)
from podium_plugins.capacity_scheduling.admission import QuotaAnswer, QuotaDemand, answer, over_max, over_total
from podium_plugins.capacity_scheduling.ledger import QuotaLedger
from podium_plugins.capacity_scheduling.quota import RESOURCE, QuotaAmounts, request_of
from podium_plugins.capacity_scheduling.standing import raised, sentences, shortages, standing

NAME: Final = "CapacityScheduling"
OVER_QUOTA: Final = Status.unschedulable("global quota max exceeded")


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


# Who may be evicted


class WithinQuotas:
    """The ruling about one node for a preemptor whose namespace has a quota."""

    def __init__(
        self, ledger: QuotaLedger, demand: QuotaDemand, borrows: bool, pods: Collection[PlacedPod], preemptor: Pod
    ) -> None:
        self._ledger = ledger
        self._demand = demand
        self._namespace = preemptor.namespace
        self.evictable: Sequence[PlacedPod]
        if borrows:
            self.evictable = [placed for placed in pods if _lower_in_namespace(placed, preemptor)]
        else:
            self.evictable = list(self._borrowers(pods))
        # The ledger itself moves in some dry runs and stays in others.
        self._used = demand.use.used.copy()
        self._total = ledger.total_used.copy()
        for placed in self.evictable:
            self._count(placed, -1)

    def _borrowers(self, pods: Collection[PlacedPod]) -> Iterator[PlacedPod]:
        used: dict[str, QuotaAmounts] = {}
        for placed in reversed(by_importance(list(pods))):
            namespace = placed.pod.namespace
            use = self._ledger.use(namespace)
            if use is None or namespace == self._namespace:
                continue
            left = used.get(namespace)
            if left is None:
                left = used[namespace] = use.used.copy()
            if use.over_min(left):
                left.add(request_of(placed.facts), -1)
                yield placed

    def _count(self, placed: PlacedPod, sign: int) -> None:
        request = request_of(placed.facts)
        self._total.add(request, sign)
        if placed.pod.namespace == self._namespace:
            self._used.add(request, sign)

    def ranked(self, pods: Sequence[PlacedPod]) -> list[PlacedPod]:
        return by_importance(pods)

    def objection(self) -> Status | None:
        request, demand = self._demand.request, self._demand
        if over_max(request, self._used, demand.quota) or over_total(request, self._total, self._ledger):
            return OVER_QUOTA
        return None

    def may_stay(self, placed: PlacedPod) -> bool:
        demand = self._demand
        self._count(placed, 1)
        over = over_max(demand.own, self._used, demand.quota) or over_total(demand.all, self._total, self._ledger)
        self._count(placed, -1)
        return not over

    def put_back(self, placed: PlacedPod) -> None:
        self._count(placed, 1)


def rows_without_victims(cluster: Cluster, ledger: QuotaLedger, demand: QuotaDemand, borrows: bool, pod: Pod) -> Mask:
    """bool[rows]: no pod there may be evicted for a pod whose namespace has a quota."""
    hopeless = np.ones(cluster.columns.rows, dtype=np.bool_)
    if borrows:
        hopeless[[placed.row for placed in demand.use.placed.values() if _lower_in_namespace(placed, pod)]] = False
        return hopeless
    for namespace, use in ledger.with_quota():
        if namespace != pod.namespace and use.over_min():
            hopeless[[placed.row for placed in use.placed.values()]] = False
    return hopeless


def _lower_in_namespace(placed: PlacedPod, preemptor: Pod) -> bool:
    return placed.pod.namespace == preemptor.namespace and placed.pod.priority < preemptor.priority
