"""Keeps `status.used` of ElasticQuotas (scheduling.x-k8s.io): what the running pods of their namespace request.

Every resource of `min` and `max` is listed, also where nothing of it is used, and beside them all else that running
pods request. The scheduler counts for itself, from the moment a pod is placed; this is what people read.

Differs from scheduler-plugins: a pod's overhead and its sidecars count, as they do for the scheduler.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from kubecel.quantity import QuantityError, format_nano, parse
from podium.client import ApiResource
from podium.controllers.controller import NORMAL, EventNote, ReconcileResult, Related, RelatedCollection, invalid
from podium.framework.clock import Clock
from podium.kube import Pod
from podium.kube.json_object import JsonObject
from podium.kube.requests import exact_requests
from podium_plugins.capacity_scheduling.quota import read_quota

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


def problem_of(quota: JsonObject, quotas: Iterable[JsonObject]) -> str:
    """What is wrong with a quota, given all of its namespace; empty where nothing is."""
    metadata = quota["metadata"]
    found = read_quota(metadata["name"], quota)
    if found.problem:
        return f"{found.problem}; pods of the namespace wait until this is corrected"
    counting = min(quotas, key=_age, default=quota)
    if counting["metadata"]["name"] != metadata["name"]:
        return f"it is ignored: ElasticQuota {counting['metadata']['name']} is older; delete one of them"
    return found.warning


def _age(quota: JsonObject) -> tuple[str, str]:
    """Of several quotas in a namespace the oldest counts, as for the scheduler."""
    return quota["metadata"].get("creationTimestamp") or "", quota["metadata"]["name"]


def _namespace(quota: JsonObject) -> str:
    return str(quota["metadata"]["namespace"])


def _namespace_of_pod(pod: Pod) -> str:
    return pod.namespace


class ElasticQuotaController:
    """A `Controller` of ElasticQuotas."""

    name = "elasticquota"
    kind = "ElasticQuota"
    resource: ApiResource[JsonObject] = ApiResource("/apis/scheduling.x-k8s.io/v1alpha1/elasticquotas")
    written = ("elasticquotas/status",)
    related = (
        RelatedCollection(ApiResource("/api/v1/pods", Pod), _namespace_of_pod, _namespace),
        RelatedCollection(resource, _namespace, _namespace),
    )
    fetched = None

    def __init__(self, _clock: Clock) -> None:
        """It needs no clock; all controllers are made with one."""

    def reconcile(self, item: JsonObject, related: Related) -> ReconcileResult:
        problem = problem_of(item, related["elasticquotas"])
        stated = invalid(problem) if problem else None
        amounts = used(item, related["pods"])
        if not differs(item, amounts):
            return ReconcileResult(problem=stated)
        name = f"{_namespace(item)}/{item['metadata']['name']}"
        synced = EventNote(NORMAL, "Synced", f"Elastic Quota {name} synced successfully")
        gone = dict.fromkeys(((item.get("status") or {}).get("used") or {}).keys() - amounts.keys())
        return ReconcileResult(status={"used": {**gone, **amounts}}, event=synced, problem=stated)
