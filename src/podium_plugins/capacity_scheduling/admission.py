"""Decides whether a pod may come, by the quotas.

    own   what the pod requests, and what pods of its namespace request that are nominated to a node and have at least
          its priority
    all   the same, and what nominated pods of other namespaces request whose quota is not over its min

The pod may come unless what its namespace uses + own is more than max, or what all quotas use + all is more than the
sum of all min. So all quotas together never use more than is guaranteed to all, whatever is free in the cluster.
"""

from __future__ import annotations

import enum

from podium import Nominator
from podium.cluster import Cluster
from podium.kube import Pod
from podium_plugins.capacity_scheduling.ledger import NamespaceUse, QuotaLedger
from podium_plugins.capacity_scheduling.quota import UNLIMITED, Quota, QuotaAmounts, exceed, request_of


class QuotaAnswer(enum.Enum):
    """What the quotas say about a pod."""

    NO_QUOTA = enum.auto()
    UNUSABLE = enum.auto()
    WITHIN = enum.auto()
    OVER_MAX = enum.auto()
    OVER_TOTAL = enum.auto()


class QuotaDemand:
    """What a pod of a namespace with a quota needs of the quotas now."""

    __slots__ = ("all", "own", "quota", "request", "use")

    def __init__(
        self, cluster: Cluster, ledger: QuotaLedger, nominator: Nominator, pod: Pod, use: NamespaceUse, quota: Quota
    ) -> None:
        self.use = use
        self.quota = quota
        self.request = request_of(cluster.facts.of(pod))
        self.own = self.all = self.request
        nominated_to = nominator.nodes()
        if nominated_to:
            self.own, self.all = self.request.copy(), self.request.copy()
            others = [other for node in nominated_to for other in nominator.on(node) if other.uid != pod.uid]
            for other in others:
                self._add(other, pod, ledger.use(other.namespace), request_of(cluster.facts.of(other)))

    def _add(self, other: Pod, pod: Pod, use: NamespaceUse | None, request: QuotaAmounts) -> None:
        if use is self.use:
            if other.priority >= pod.priority:
                self.own.add(request)
                self.all.add(request)
        elif use is not None and not use.over_min():
            self.all.add(request)

    @property
    def borrows(self) -> bool:
        """Whether the pod would take its namespace over what is guaranteed to it."""
        return exceed(self.own, self.use.used, self.quota.min, 0)


def answer(ledger: QuotaLedger, demand: QuotaDemand) -> QuotaAnswer:
    """Whether a pod may come."""
    if over_max(demand.own, demand.use.used, demand.quota):
        return QuotaAnswer.OVER_MAX
    return QuotaAnswer.OVER_TOTAL if over_total(demand.all, ledger.total_used, ledger) else QuotaAnswer.WITHIN


def over_max(more: QuotaAmounts, used: QuotaAmounts, quota: Quota) -> bool:
    """Whether a namespace that uses this and gets more would be over its max."""
    return exceed(more, used, quota.max, UNLIMITED)


def over_total(more: QuotaAmounts, used: QuotaAmounts, ledger: QuotaLedger) -> bool:
    """Whether quotas that use this together and get more would be over the sum of what is guaranteed."""
    if exceed(more, used, ledger.total_min, 0):
        return True
    return bool(used.scalars) and exceed(used, more, ledger.total_min, 0)
