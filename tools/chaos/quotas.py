"""Checks what must hold for quotas: none is exceeded, and every scheduler counts what the API server has.

At every binding that the API server takes, what the bound pods of the namespace request is within its max, and what
those of all namespaces with a quota request is within the sum of all min. As with nodes, a scheduler is to blame only
where the pods that it knew of or had bound itself are too much for quotas as it knew them, then or at a later decision
of its own. That it has not heard of a quota that was there before it started is no excuse.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from kubecel.quantity import milli, units
from podium.engine.scheduler import Scheduler
from podium.kube import Pod
from podium.kube.json_object import JsonObject
from podium.kube.requests import pod_requests
from podium_cluster.apiserver.api import EmbeddedApi
from podium_plugins.capacity_scheduling.ledger import QuotaLedger
from podium_plugins.capacity_scheduling.quota import RESOURCE
from tools.chaos.amounts import Amounts, sum_of
from tools.chaos.machines import kind_of
from tools.kit.virtual_time import VirtualProcess

QUOTAS_HELD = "no quota is exceeded"

CONFIG = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    multiPoint:
      enabled: [{name: CapacityScheduling}]
    postFilter:
      enabled: [{name: CapacityScheduling}]
      disabled: [{name: "*"}]
"""
ANY_NUMBER = 10**9


class QuotaBounds(NamedTuple):
    """What an ElasticQuota guarantees and allows."""

    least: Amounts
    most: Amounts


class QuotaKnowledge(NamedTuple):
    """What a scheduler knew as it chose a node for a pod."""

    number: int
    """How many decisions it had made by then."""
    pods: frozenset[str]
    """The pods that it had heard to be bound, by uid."""


class QuotaChecks:
    """The quotas of one run as the API server has them, and as schedulers knew them at each of their decisions."""

    def __init__(self, api: EmbeddedApi, namespaces: Iterable[str]) -> None:
        self._api = api
        self._namespaces = frozenset(namespaces)
        self._decisions: dict[tuple[str, VirtualProcess], QuotaKnowledge] = {}
        self._known: dict[VirtualProcess, list[Mapping[str, QuotaBounds]]] = {}

    def decided(self, process: VirtualProcess, engine: Scheduler, heard: Iterable[Pod], pod: Pod) -> None:
        """A scheduler has chosen a node: note what it had heard of quotas and of pods by then."""
        known = self._known.setdefault(process, [])
        self._decisions[pod.uid, process] = QuotaKnowledge(
            len(known), frozenset(each.uid for each in heard if each.node_name)
        )
        store = engine.cluster.objects.custom_store(RESOURCE)
        bounds = {item["metadata"]["namespace"]: bounds_of(item) for item in store}
        known.append({**self._true_bounds(), **bounds})

    def exceeded(
        self, by: VirtualProcess | None, uid: str, pods: Mapping[str, tuple[str, Amounts, VirtualProcess | None]]
    ) -> tuple[bool, str] | None:
        """(whether the scheduler had to know, what is exceeded) now that this pod is bound; None where nothing is.

        `pods` are all that have a node: (namespace, what it requests, who bound it) by uid.
        """
        if pods[uid][0] not in self._namespaces:
            return None
        namespace = pods[uid][0]
        what = self._over(namespace, pods.values(), [self._true_bounds()])
        if what is None:
            return None
        decision = None if by is None else self._decisions.get((uid, by))
        if by is None or decision is None:
            return False, what
        known = [each for other, each in pods.items() if each[2] is by or other in decision.pods]
        return self._over(namespace, known, self._known[by][decision.number :]) is not None, what

    def _over(
        self, namespace: str, pods: Iterable[tuple[str, Amounts, Any]], bounds: list[Mapping[str, QuotaBounds]]
    ) -> str | None:
        """What is exceeded by these pods, by the most that the bounds have been."""
        counted = [each for each in pods if each[0] in self._namespaces]
        used = sum_of(asks for space, asks, _ in counted if space == namespace)
        most = _largest(each[namespace].most for each in bounds)
        if not used.within(most):
            return f"{namespace} uses {used} of max {most}"
        total = sum_of(asks for _, asks, _ in counted)
        least = _largest(sum_of(bound.least for bound in each.values()) for each in bounds)
        return None if total.within(least) else f"all quotas use {total} of {least}, the sum of min"

    def _true_bounds(self) -> dict[str, QuotaBounds]:
        kind = kind_of(self._api, "scheduling.x-k8s.io/v1alpha1", "ElasticQuota")
        return {each.namespace: bounds_of(each.decode()) for each in self._api.store.items(kind)}


def bounds_of(quota: JsonObject) -> QuotaBounds:
    spec = quota["spec"]
    least, most = (
        Amounts(milli(spec[name]["cpu"]), units(spec[name]["memory"]), ANY_NUMBER) for name in ("min", "max")
    )
    return QuotaBounds(least, most)


def _largest(amounts: Iterable[Amounts]) -> Amounts:
    """The largest of each."""
    return Amounts(*map(max, zip(*amounts, strict=True)))


def wrong_accounts(bound: Iterable[Pod], engine: Scheduler) -> Iterator[str]:
    """Where a scheduler does not count what the bound pods of a namespace with a quota request."""
    ledger = engine.cluster.account(QuotaLedger)
    if ledger is None:
        return
    requests: dict[str, list[Amounts]] = {}
    for pod in bound:
        asks = pod_requests(pod)
        requests.setdefault(pod.namespace, []).append(Amounts(asks.get("cpu", 0), asks.get("memory", 0), 0))
    for namespace, use in ledger.with_quota():
        counted, true = Amounts(use.used.cpu, use.used.memory, 0), sum_of(requests.get(namespace, ()))
        if counted != true:
            yield f"{namespace} is said to use {counted}, not {true}"
