"""Prepares pods: what the server decides when one is written.

A new pod is Pending with a QoS class, carries the priority of its class, has its label keys in its selectors, and is
marked while gates keep it from being scheduled. Deleting one waits for its node: for the time the pod or the request
says, but not at all where it has no node or has ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from podium.kube.json_object import JsonObject
from podium.kube.pod_qos import qos_class
from podium_cluster.apiserver.kind_record import KindRecord, KindRules
from podium_cluster.apiserver.kinds.pods.admission import label_with_topology, set_priority, set_runtime
from podium_cluster.apiserver.kinds.pods.kind import BINDING, POD
from podium_cluster.apiserver.kinds.pods.spec import pod
from podium_cluster.apiserver.kinds.pods.table import POD_TABLE
from podium_cluster.apiserver.kinds.pods.update import pod_claim_status, pod_update
from podium_cluster.apiserver.write_context import WriteContext

_GATED: Final = "Scheduling is blocked due to non-empty scheduling gates"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def _admit(obj: JsonObject, context: WriteContext) -> None:
    set_priority(obj, context)
    set_runtime(obj, context)
    label_with_topology(obj, context)


def _prepare_for_create(obj: JsonObject, context: WriteContext) -> None:
    spec = obj.setdefault("spec", {})
    status: JsonObject = {"phase": "Pending", "qosClass": qos_class(spec)}
    if spec.get("schedulingGates"):
        condition = {"type": "PodScheduled", "status": "False", "lastProbeTime": None}
        why = {"lastTransitionTime": context.now(), "reason": "SchedulingGated", "message": _GATED}
        status["conditions"] = [{**condition, **why}]
    obj["status"] = status
    _merge_label_keys(obj)


def _merge_label_keys(pod: JsonObject) -> None:
    """Write the label keys of affinity terms and spread constraints into the selectors beside them, in place.

    A key in matchLabelKeys asks for other pods with this pod's value of the label, one in mismatchLabelKeys for pods
    with another value. The scheduler knows only selectors, so the API writes `key in (value)` and `key notin (value)`
    into them when the pod is created. Keys of labels that the pod does not have say nothing.
    """
    spec = pod["spec"]
    affinity, constraints = spec.get("affinity"), spec.get("topologySpreadConstraints")
    if not affinity and not constraints:
        return
    labels = pod["metadata"].get("labels") or {}
    for term in _affinity_terms(affinity or {}):
        _merge(term, "matchLabelKeys", "In", labels)
        _merge(term, "mismatchLabelKeys", "NotIn", labels)
    for constraint in constraints or ():
        _merge(constraint, "matchLabelKeys", "In", labels)


def _affinity_terms(affinity: JsonObject) -> Iterator[JsonObject]:
    for name in ("podAffinity", "podAntiAffinity"):
        found = affinity.get(name) or {}
        yield from found.get(_REQUIRED) or ()
        for weighted in found.get(_PREFERRED) or ():
            yield weighted.get("podAffinityTerm") or {}


def _merge(term: JsonObject, field: str, operator: str, labels: dict[str, str]) -> None:
    selector = term.get("labelSelector")
    if selector is None:  # It selects nothing; with keys it is refused.
        return
    same = [
        {"key": key, "operator": operator, "values": [labels[key]]} for key in term.get(field) or () if key in labels
    ]
    if same:
        selector["matchExpressions"] = [*(selector.get("matchExpressions") or ()), *same]


def _prepare_for_update(new: JsonObject, old: JsonObject, context: WriteContext) -> None:
    """Who replaces a pod need not know what admission has written into it."""
    spec, old_spec = new.setdefault("spec", {}), old.get("spec") or {}
    for field in ("priority", "preemptionPolicy"):
        if spec.get(field) is None and field in old_spec:
            spec[field] = old_spec[field]


def _prepare_for_status(new: JsonObject, old: JsonObject, context: WriteContext) -> None:
    metadata, old_metadata, old_status = new["metadata"], old["metadata"], old.get("status") or {}
    metadata.pop("deletionTimestamp", None)
    if "ownerReferences" in old_metadata:
        metadata["ownerReferences"] = old_metadata["ownerReferences"]
    else:
        metadata.pop("ownerReferences", None)
    status = new.setdefault("status", {})
    if status.get("podIP") and not status.get("podIPs"):
        status["podIPs"] = [{"ip": status["podIP"]}]
    if not status.get("qosClass") and old_status.get("qosClass"):
        status["qosClass"] = old_status["qosClass"]
    if not status.get("observedGeneration") and old_status.get("observedGeneration"):
        status["observedGeneration"] = old_status["observedGeneration"]
    _keep_observed_generations(status, old_status)


def _keep_observed_generations(status: JsonObject, old_status: JsonObject) -> None:
    """A condition written without the generation it is about keeps the one it had."""
    known: dict[str, list[int]] = {}
    for condition in old_status.get("conditions") or ():
        known.setdefault(condition["type"], []).append(condition.get("observedGeneration", 0))
    for condition in status.get("conditions") or ():
        generations = known.get(condition.get("type", ""))
        generation = generations.pop(0) if generations else 0
        if not condition.get("observedGeneration") and generation:
            condition["observedGeneration"] = generation


def _grace_seconds(pod: JsonObject, requested: int | None) -> int:
    spec = pod.get("spec") or {}
    if not spec.get("nodeName") or (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed"):
        return 0
    period = spec.get("terminationGracePeriodSeconds") or 0 if requested is None else requested
    return 1 if period < 0 else int(period)


POD_RECORD: Final = KindRecord(
    POD,
    KindRules(
        admit=_admit,
        prepare_for_create=_prepare_for_create,
        prepare_for_update=_prepare_for_update,
        prepare_for_status=_prepare_for_status,
        validate=pod,
        validate_update=pod_update,
        validate_status=pod_claim_status,
        grace_seconds=_grace_seconds,
        generation="spec",
        returns_deleted=True,
    ),
    POD_TABLE,
)
BINDING_RECORD: Final = KindRecord(BINDING)
