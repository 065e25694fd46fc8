"""Tabulates pods: one word for what a pod is doing, out of its phase, its conditions and each of its containers.

The status is the phase, unless something says it better: a scheduling gate, the first init container that is not
through ("Init:1/3"), a container's own reason ("CrashLoopBackOff", "Completed"), or deletion ("Terminating").
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final, NamedTuple

from podium.kube.json_object import JsonObject
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
