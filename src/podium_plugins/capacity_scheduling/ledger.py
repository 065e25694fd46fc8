"""Keeps account of what the pods of each namespace use, and of the quotas that bound it.

A pod counts from the moment it has a node in memory until it ends or is deleted. So the account is right after a
restart, whoever bound the pod and whether the quota came before or after it. It is called in dry runs, too, and what
comes goes again there.

A namespace has one quota. Where there are several, the oldest counts (the first by name among those of one second), and
the others are reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from podium import ObjectProblems
from podium.cluster import Cluster, PlacedPod
from podium_plugins.capacity_scheduling.quota import RESOURCE, Quota, QuotaAmounts, exceed, read_quota, request_of

NOTHING = QuotaAmounts()
INVALID, IGNORED, DELETED = "InvalidElasticQuota", "IgnoredElasticQuota", "ElasticQuotaDeleted"
"""Reasons of events on quotas."""


class NamespaceUse:
    """What one namespace uses, its pods that have a node, and its quotas, the one that counts first."""

    __slots__ = ("placed", "quota", "quotas", "unusable", "used")

    def __init__(self) -> None:
        self.used = QuotaAmounts()
        self.placed: dict[str, PlacedPod] = {}
        self.quotas: list[Quota] = []
        self.quota: Quota | None = None
        self.unusable: Quota | None = None
        """The quota that would count if it could be read."""

    def over_min(self, used: QuotaAmounts | None = None) -> bool:
        """Whether more is used than guaranteed; `used` in place of what is used now."""
        return self.quota is not None and exceed(self.used if used is None else used, NOTHING, self.quota.min, 0)


class QuotaLedger:
    """The account of all namespaces; one serves all profiles."""

    def __init__(self, cluster: Cluster, problems: ObjectProblems) -> None:
        self._problems = problems
        self._uses: dict[str, NamespaceUse] = {}
        self.total_used = QuotaAmounts()
        """What the namespaces that have a quota use together."""
        self.total_min = QuotaAmounts()
        """What is guaranteed to them together."""
        cluster.follow_pods(self)
        cluster.objects.custom_store(RESOURCE).follow(self._quota_changed)

    @classmethod
    def of(cls, cluster: Cluster, problems: ObjectProblems) -> QuotaLedger:
        return cluster.account(cls) or cls(cluster, problems)

    def use(self, namespace: str) -> NamespaceUse | None:
        """What a namespace uses, where it has a quota."""
        use = self._uses.get(namespace)
        return None if use is None or use.quota is None else use

    def unusable(self, namespace: str) -> Quota | None:
        """The quota of a namespace, where it cannot be used."""
        use = self._uses.get(namespace)
        return None if use is None else use.unusable

    def is_free(self, namespace: str) -> bool:
        """Whether a namespace has no quota at all."""
        use = self._uses.get(namespace)
        return use is None or not use.quotas

    def with_quota(self) -> Iterator[tuple[str, NamespaceUse]]:
        return ((namespace, use) for namespace, use in self._uses.items() if use.quota is not None)

    # Pods

    def pod_added(self, placed: PlacedPod) -> None:
        namespace = placed.pod.metadata.namespace
        use = self._uses.get(namespace)
        if use is None:
            use = self._uses[namespace] = NamespaceUse()
        use.placed[placed.pod.metadata.uid] = placed
        self._count(use, placed, 1)

    def pod_removed(self, placed: PlacedPod) -> None:
        namespace = placed.pod.metadata.namespace
        use = self._uses[namespace]
        del use.placed[placed.pod.metadata.uid]
        self._count(use, placed, -1)
        if not use.placed and not use.quotas:
            del self._uses[namespace]

    def _count(self, use: NamespaceUse, placed: PlacedPod, sign: int) -> None:
        request = request_of(placed.facts)
        use.used.add(request, sign)
        if use.quota is not None:
            self.total_used.add(request, sign)

    # Quotas

    def _quota_changed(self, key: str, _before: Any | None, after: Any | None) -> None:
        namespace = key.partition("/")[0]
        use = self._uses.setdefault(namespace, NamespaceUse())
        before = next((quota for quota in use.quotas if quota.key == key), None)
        others = [quota for quota in use.quotas if quota is not before]
        quota = None if after is None else read_quota(key, after)
        use.quotas = sorted(others if quota is None else [*others, quota], key=lambda each: (each.created, each.key))
        self._choose(use)
        if quota is None and before is not None:
            self._gone(before, use)
        self._say_what_is_wrong(use)
        if not use.placed and not use.quotas:
            del self._uses[namespace]

    def _choose(self, use: NamespaceUse) -> None:
        """Let the first quota of the namespace count, and no other."""
        for sign in (-1, 1):
            if use.quota is not None:
                self.total_used.add(use.used, sign)
                self.total_min.add(use.quota.min, sign)
            if sign < 0:
                first = use.quotas[0] if use.quotas else None
                broken = first is not None and bool(first.problem)
                use.quota, use.unusable = (None, first) if broken else (first, None)

    def _say_what_is_wrong(self, use: NamespaceUse) -> None:
        for quota in use.quotas:
            first = use.quotas[0]
            if quota.problem:
                note = f"{quota.problem}; pods of its namespace wait until that is corrected"
                self._problems.set(quota.regarding, INVALID, note)
            elif quota is not first:
                note = f"it is ignored: a namespace has one quota, and {first.key} is older; delete one of them"
                self._problems.set(quota.regarding, IGNORED, note)
            elif quota.warning:
                self._problems.set(quota.regarding, INVALID, quota.warning)
            else:
                self._problems.clear(quota.regarding)

    def _gone(self, quota: Quota, use: NamespaceUse) -> None:
        self._problems.clear(quota.regarding)
        pods = sum(not placed.pod.terminating for placed in use.placed.values())
        if pods and not use.quotas:
            note = f"it was deleted while {pods} pods of its namespace have a node; no quota bounds the namespace now"
            self._problems.mention(quota.regarding, DELETED, note)
