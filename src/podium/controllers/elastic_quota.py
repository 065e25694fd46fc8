"""Keeps `status.used` of ElasticQuotas (scheduling.x-k8s.io): what the running pods of their namespace request.

Every resource of `min` and `max` is listed, also where nothing of it is used, and beside them all else that running
pods request. The scheduler counts for itself, from the moment a pod is placed; this is what people read.

Differs from scheduler-plugins: a pod's overhead and its sidecars count, as they do for the scheduler.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable

from podium.client import ApiResource
from podium.kube import Pod
from podium.kube.json_object import JsonObject
from podium.kube.quantity import QuantityError, format_nano, parse
from podium.kube.requests import exact_requests

BINARY = frozenset({"memory", "ephemeral-storage"})


def used(quota: JsonObject, pods: Iterable[Pod]) -> dict[str, str]:
    """What `status.used` should be, for all pods of the quota's namespace."""
    spec = quota.get("spec") or {}
    total = Counter({name: 0 for bound in ("min", "max") for name in spec.get(bound) or {}})
    for pod in pods:
        if pod.status.phase == "Running":
            total.update(exact_requests(pod))
    return {name: format_nano(amount, binary=_binary(name)) for name, amount in sorted(total.items())}


def differs(quota: JsonObject, amounts: dict[str, str]) -> bool:
    """Whether a quota's status says something else; "1" and "1000m" are the same."""
    written = (quota.get("status") or {}).get("used") or {}
    if written.keys() != amounts.keys():
        return True
    try:
        return any(parse(written[name]) != parse(amount) for name, amount in amounts.items())
    except QuantityError:
        return True


def _binary(name: str) -> bool:
    return name in BINARY or name.startswith("hugepages-")


class ElasticQuotaController:
    """A `Controller` of ElasticQuotas."""

    name = "elasticquota"
    resource: ApiResource[JsonObject] = ApiResource("/apis/scheduling.x-k8s.io/v1alpha1/elasticquotas")
    pods = ApiResource("/api/v1/pods", Pod)

    def group_of_pod(self, pod: Pod) -> str:
        return pod.namespace

    def group_of(self, item: JsonObject) -> str:
        return str(item["metadata"]["namespace"])

    def status(self, item: JsonObject, pods: Collection[Pod]) -> JsonObject | None:
        amounts = used(item, pods)
        return {"used": amounts} if differs(item, amounts) else None
