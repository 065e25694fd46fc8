"""Rules who may be evicted for a pod, by the quotas.

    the preemptor has                 evictable are
    a quota, and would borrow         pods of its own namespace of lower priority
    a quota, and stays within min     pods of other namespaces that are over their min, whatever their priority; the
                                      least important go first, and none once its namespace is within its min
    no quota                          pods of lower priority in namespaces without a quota

A pod may stay if, with it, the preemptor's namespace is not over max and all quotas are not over the sum of min.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from podium.cluster import Cluster, Mask, PlacedPod
from podium.framework import Status
from podium.kube import Pod
from podium.preemption import by_importance
from podium_plugins.capacity_scheduling.admission import QuotaDemand, over_max, over_total
from podium_plugins.capacity_scheduling.amounts import QuotaAmounts, request_of
from podium_plugins.capacity_scheduling.ledger import QuotaLedger

OVER_QUOTA = Status.unschedulable("global quota max exceeded")


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
