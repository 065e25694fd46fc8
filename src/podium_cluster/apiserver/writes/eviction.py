"""Evicts a pod: a deletion that a PodDisruptionBudget may refuse.

A pod that has ended, has not started or is going already disrupts nothing and is deleted. One that is not ready does
not count as available, so it may go when the others suffice. Otherwise one allowed disruption is used up; when none is
left the answer is 429 with the reason, and the client asks again later.
"""

from __future__ import annotations

from typing import Final

import msgspec

from podium.kube.json_object import JsonObject
from podium.kube.meta import LabelSelector
from podium.kube.selector import SelectorError, compile_label_selector
from podium_cluster.apiserver.errors import Cause, StatusError, bad_request, forbidden, too_many_requests
from podium_cluster.apiserver.kinds import POD, built_in
from podium_cluster.apiserver.write_context import DeleteOptions, WriteContext
from podium_cluster.apiserver.writes.binding import set_condition
from podium_cluster.apiserver.writes.conflict import check_preconditions
from podium_cluster.apiserver.writes.delete import delete
from podium_cluster.apiserver.writes.metadata import admit_namespace

BUDGET: Final = built_in("policy/v1", "PodDisruptionBudget")
_VIOLATES: Final = "Cannot evict pod as it would violate the pod's disruption budget."
_MAX_DISRUPTED: Final = 2000


def evict(context: WriteContext, namespace: str, name: str, body: JsonObject, *, dry_run: bool = False) -> None:
    """Delete the pod unless a PodDisruptionBudget forbids that now (429)."""
    admit_namespace(context.store, POD, namespace, name)
    metadata = body.get("metadata") or {}
    if metadata.get("name", name) != name:
        raise bad_request("name in URL does not match name in Eviction object")
    options = body.get("deleteOptions") or {}
    dry_run = dry_run or bool(options.get("dryRun"))
    stored = context.stored(POD, namespace, name)
    pod = stored.decode()
    phase = (pod.get("status") or {}).get("phase")
    if phase not in ("Succeeded", "Failed", "Pending") and "deletionTimestamp" not in pod["metadata"]:
        _use_budget(context, pod, dry_run)
    preconditions = options.get("preconditions") or {}
    check_preconditions(POD, stored, preconditions.get("uid"), preconditions.get("resourceVersion"))
    if not dry_run:
        set_condition(pod.setdefault("status", {}), _TARGETED, context.now())
        context.store.put(POD, pod)
    chosen = DeleteOptions(
        grace_seconds=options.get("gracePeriodSeconds"),
        propagation=options.get("propagationPolicy") or "",
        dry_run=dry_run,
    )
    delete(context, POD, namespace, name, chosen)


_TARGETED: Final = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}


def _use_budget(context: WriteContext, pod: JsonObject, dry_run: bool) -> None:
    budgets = _budgets_of(context, pod)
    if not budgets:
        return
    if len(budgets) > 1:
        message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        raise StatusError(500, "", message)
    budget = budgets[0]
    status = budget.setdefault("status", {})
    if not _ready(pod):
        if (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
            return
        if status.get("currentHealthy", 0) >= status.get("desiredHealthy", 0) > 0:
            return
    _check_allowed(budget, status)
    status["disruptionsAllowed"] -= 1
    if dry_run:
        return
    status.setdefault("disruptedPods", {})[pod["metadata"]["name"]] = context.now()
    _set_allowed(budget, status, context.now())
    context.store.put(BUDGET, budget)


def _set_allowed(budget: JsonObject, status: JsonObject, now: str) -> None:
    """Say in the conditions whether another disruption would be allowed."""
    allowed = status["disruptionsAllowed"] > 0
    condition = {
        "type": "DisruptionAllowed",
        "status": "True" if allowed else "False",
        "observedGeneration": status.get("observedGeneration", 0),
        "lastTransitionTime": now,
        "reason": "SufficientPods" if allowed else "InsufficientPods",
        "message": "",
    }
    conditions: list[JsonObject] = status.setdefault("conditions", [])
    for at, present in enumerate(conditions):
        if present.get("type") == condition["type"]:
            if present.get("status") == condition["status"]:
                condition["lastTransitionTime"] = present.get("lastTransitionTime", now)
            conditions[at] = condition
            return
    conditions.append(condition)


def _check_allowed(budget: JsonObject, status: JsonObject) -> None:
    name = budget["metadata"]["name"]
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        cause = f"The disruption budget {name} is still being processed by the server."
        raise too_many_requests(_VIOLATES, 10, [Cause("DisruptionBudget", cause, "")])
    allowed = status.get("disruptionsAllowed", 0)
    if allowed < 0:
        raise forbidden(BUDGET, name, "pdb disruptions allowed is negative")
    if len(status.get("disruptedPods") or {}) > _MAX_DISRUPTED:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise forbidden(BUDGET, name, why)
    if allowed == 0:
        raise too_many_requests(_VIOLATES, 0, [Cause("DisruptionBudget", _why_not(name, status), "")])


def _why_not(name: str, status: JsonObject) -> str:
    refusals = [
        condition
        for condition in status.get("conditions") or ()
        if condition.get("type") == "DisruptionAllowed" and condition.get("status") == "False"
    ]
    message = refusals[0].get("message", "") if refusals else ""
    if message and refusals[0].get("reason") == "SyncFailed":
        return f"The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}"
    desired, current = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
    if current <= desired:
        return f"The disruption budget {name} needs {desired} healthy pods and has {current} currently"
    if message:
        reason = refusals[0].get("reason", "")
        return f"The disruption budget {name} does not allow evicting pods currently ({reason}): {message}"
    return f"The disruption budget {name} does not allow evicting pods currently"


def _budgets_of(context: WriteContext, pod: JsonObject) -> list[JsonObject]:
    labels = pod["metadata"].get("labels") or {}
    found = []
    for stored in context.store.items(BUDGET, pod["metadata"]["namespace"]):
        budget = stored.decode()
        selector = (budget.get("spec") or {}).get("selector")
        try:
            compiled = compile_label_selector(None if selector is None else msgspec.convert(selector, LabelSelector))
        except (SelectorError, msgspec.ValidationError):
            continue
        if compiled.matches(labels):
            found.append(budget)
    return found


def _ready(pod: JsonObject) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(condition.get("type") == "Ready" and condition.get("status") == "True" for condition in conditions)
