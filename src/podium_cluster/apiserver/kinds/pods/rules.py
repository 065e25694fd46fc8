"""Prepares pods and tabulates them: what the server decides when one is written, and one word for what it is doing.

A new pod is Pending with a QoS class, carries the priority of its class, has its label keys in its selectors, and is
marked while gates keep it from being scheduled. Deleting one waits for its node: for the time the pod or the request
says, but not at all where it has no node or has ended.

The word comes out of the phase, the conditions and each of the containers. The status is the phase, unless something
says it better: a scheduling gate, the first init container that is not through ("Init:1/3"), a container's own reason
("CrashLoopBackOff", "Completed"), or deletion ("Terminating").
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final, NamedTuple

from podium.kube.json_object import JsonObject
from podium.kube.pod_qos import qos_class
from podium_cluster.apiserver.kind_record import KindRecord, KindRules
from podium_cluster.apiserver.kinds.pods.admission import label_with_topology, set_priority, set_runtime
from podium_cluster.apiserver.kinds.pods.kind import BINDING, POD
from podium_cluster.apiserver.kinds.pods.spec import pod
from podium_cluster.apiserver.kinds.pods.update import pod_claim_status, pod_update
from podium_cluster.apiserver.table_cells import (
    AGE,
    NAME,
    NONE,
    Cells,
    KindTable,
    TableColumn,
    age,
    condition,
    since,
    wide,
)
from podium_cluster.apiserver.write_context import WriteContext

_COLUMNS: Final = (
    NAME,
    TableColumn("Ready", "How many of the pod's containers are ready."),
    TableColumn("Status", "What the pod is doing."),
    TableColumn("Restarts", "How often its containers were restarted, and how long ago the last time."),
    AGE,
    wide("IP", "The pod's address."),
    wide("Node", "The node the pod is bound to."),
    wide("Nominated Node", "The node a preemption makes room on for this pod."),
    wide("Readiness Gates", "How many of the pod's readiness gates are open."),
)


class _Containers(NamedTuple):
    """What the containers together say."""

    reason: str
    ready: int
    restarts: int
    last_restart: str


def _cells(pod: JsonObject, now: datetime) -> Cells:
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    conditions = status.get("conditions") or []
    restartable = {each["name"] for each in spec.get("initContainers") or () if each.get("restartPolicy") == "Always"}
    summary = _containers(spec, status, _phase(status, conditions), restartable)
    restarts = str(summary.restarts)
    if summary.restarts and summary.last_restart:
        restarts += f" ({since(summary.last_restart, now)} ago)"
    ready = f"{summary.ready}/{len(spec.get('containers') or ()) + len(restartable)}"
    addresses = status.get("podIPs") or [{}]
    return [
        pod["metadata"]["name"],
        ready,
        _of_deleted(pod, status) or summary.reason,
        restarts,
        age(pod, now),
        addresses[0].get("ip") or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        _readiness_gates(spec, conditions),
    ]


def _phase(status: JsonObject, conditions: Iterable[JsonObject]) -> str:
    for each in conditions:
        if each.get("type") == "PodScheduled" and each.get("reason") == "SchedulingGated":
            return "SchedulingGated"
    return str(status.get("reason") or status.get("phase") or "")


def _of_deleted(pod: JsonObject, status: JsonObject) -> str:
    """The word for a pod that is being deleted, nothing for any other."""
    if not pod["metadata"].get("deletionTimestamp"):
        return ""
    if status.get("reason") == "NodeLost":
        return "Unknown"
    return "" if status.get("phase") in ("Succeeded", "Failed") else "Terminating"


def _containers(spec: JsonObject, status: JsonObject, reason: str, restartable: set[str]) -> _Containers:
    initial = _init_containers(spec, status, restartable)
    conditions = status.get("conditions")
    if initial.reason and condition(conditions, "Initialized") != "True":
        return initial
    reason = initial.reason or reason
    sidecars = [each for each in status.get("initContainerStatuses") or () if each.get("name") in restartable]
    listed = status.get("containerStatuses") or []
    ready, error = initial.ready, ""
    running = False
    for container in reversed(listed):
        state = container.get("state") or {}
        ended = state.get("terminated")
        if (state.get("waiting") or {}).get("reason"):
            reason = state["waiting"]["reason"]
        elif ended is not None:
            reason = _ended(ended)
            error = reason if ended.get("exitCode") else error
        elif container.get("ready") and state.get("running") is not None:
            running = True
            ready += 1
    # One container that goes on makes a pod of completed ones a running pod.
    if reason == "Completed":
        if running and condition(conditions, "Ready") == "True":
            reason = "Running"
        elif error:
            reason = error
        elif running:
            reason = "NotReady"
    return _Containers(reason, ready, _restarts(sidecars + listed), _last_restart(sidecars + listed))


def _init_containers(spec: JsonObject, status: JsonObject, restartable: set[str]) -> _Containers:
    """How far the init containers are; no reason where all are through (or, restartable, have started)."""
    seen: list[JsonObject] = []
    ready = 0
    for position, container in enumerate(status.get("initContainerStatuses") or ()):
        seen.append(container)
        state = container.get("state") or {}
        ended = state.get("terminated")
        waiting = (state.get("waiting") or {}).get("reason")
        if ended is not None and not ended.get("exitCode"):
            continue
        if container.get("name") in restartable and container.get("started"):
            ready += bool(container.get("ready"))
            continue
        if ended is not None:
            reason = f"Init:{_ended(ended)}"
        elif waiting and waiting != "PodInitializing":
            reason = f"Init:{waiting}"
        else:
            reason = f"Init:{position}/{len(spec.get('initContainers') or ())}"
        return _Containers(reason, ready, _restarts(seen), _last_restart(seen))
    return _Containers("", ready, _restarts(seen), _last_restart(seen))


def _ended(terminated: JsonObject) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def _restarts(statuses: Iterable[JsonObject]) -> int:
    return sum(each.get("restartCount", 0) for each in statuses)


def _last_restart(statuses: Iterable[JsonObject]) -> str:
    ends = (((each.get("lastState") or {}).get("terminated") or {}).get("finishedAt") for each in statuses)
    return max((end for end in ends if end), default="")


def _readiness_gates(spec: JsonObject, conditions: Iterable[JsonObject]) -> str:
    gates: list[dict[str, Any]] = spec.get("readinessGates") or []
    if not gates:
        return NONE
    conditions = list(conditions)
    opened = sum(condition(conditions, gate["conditionType"]) == "True" for gate in gates)
    return f"{opened}/{len(gates)}"


def _row_conditions(pod: JsonObject) -> list[dict[str, str]]:
    """A row says of itself that its pod is through, so that a client may leave it out."""
    phase = (pod.get("status") or {}).get("phase")
    if phase not in ("Succeeded", "Failed"):
        return []
    message = "The pod has completed successfully." if phase == "Succeeded" else "The pod failed."
    return [{"type": "Completed", "status": "True", "reason": phase, "message": message}]


POD_TABLE: Final = KindTable(_COLUMNS, _cells, _row_conditions)


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
    for each in old_status.get("conditions") or ():
        known.setdefault(each["type"], []).append(each.get("observedGeneration", 0))
    for each in status.get("conditions") or ():
        generations = known.get(each.get("type", ""))
        generation = generations.pop(0) if generations else 0
        if not each.get("observedGeneration") and generation:
            each["observedGeneration"] = generation


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
