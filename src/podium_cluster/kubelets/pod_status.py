"""Computes the status of a pod as its kubelet writes it. Pure: a pod's old status and what has happened go in, the new
status comes out."""

from __future__ import annotations

from podium.kube.json_object import JsonObject

_ORDER = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")


def waiting(pod: JsonObject, time: str, host_ip: str) -> JsonObject:
    """Accepted, and its containers are being created."""
    status = _base(pod, "Pending", host_ip)
    status["startTime"] = time
    names = _names(pod)
    unready = ("False", "ContainersNotReady", f"containers with unready status: [{names}]")
    initialized = ("True", "", "")
    inits = pod["spec"].get("initContainers") or []
    if inits:
        incomplete = " ".join(container["name"] for container in inits)
        initialized = ("False", "ContainersNotInitialized", f"containers with incomplete status: [{incomplete}]")
    _conditions(
        status,
        time,
        PodReadyToStartContainers=("False", "", ""),
        Initialized=initialized,
        Ready=unready,
        ContainersReady=unready,
    )
    reason = "PodInitializing" if inits else "ContainerCreating"
    status["containerStatuses"] = [
        _container(each, {"waiting": {"reason": reason}}, ready=False) for each in pod["spec"]["containers"]
    ]
    if inits:
        status["initContainerStatuses"] = [
            _container(each, {"waiting": {"reason": "PodInitializing"}}, ready=False) for each in inits
        ]
    return status


def running(pod: JsonObject, time: str, host_ip: str, pod_ip: str) -> JsonObject:
    """All containers run and are ready; init containers have ended, sidecars stay."""
    status = _base(pod, "Running", host_ip)
    status.setdefault("startTime", time)
    status |= {"podIP": pod_ip, "podIPs": [{"ip": pod_ip}]}
    good = ("True", "", "")
    _conditions(status, time, PodReadyToStartContainers=good, Initialized=good, Ready=good, ContainersReady=good)
    before = {each["name"]: each for each in (pod.get("status") or {}).get("containerStatuses") or ()}
    status["containerStatuses"] = [
        _container(each, {"running": {"startedAt": time}}, ready=True, old=before.get(each["name"]))
        for each in pod["spec"]["containers"]
    ]
    inits = pod["spec"].get("initContainers") or []
    if inits:
        status["initContainerStatuses"] = [
            _container(each, {"running": {"startedAt": time}}, ready=True)
            if each.get("restartPolicy") == "Always"
            else _container(each, {"terminated": _terminated(0, time, time)}, ready=True, started=False)
            for each in inits
        ]
    return status


def back_online(pod: JsonObject, time: str) -> JsonObject:
    """The node is back: what runs is ready again, whatever others have concluded from its silence."""
    status = dict(pod["status"])
    containers = status.get("containerStatuses") or []
    if containers and all("running" in each["state"] for each in containers):
        _conditions(status, time, Ready=("True", "", ""), ContainersReady=("True", "", ""))
    return status


def crashed(pod: JsonObject, time: str, exit_code: int, wait_seconds: float) -> JsonObject:
    """A container has ended and will be started again after the wait."""
    status = dict(pod["status"])
    unready = ("False", "ContainersNotReady", f"containers with unready status: [{_names(pod)}]")
    _conditions(status, time, Ready=unready, ContainersReady=unready)
    name = f"{pod['metadata']['name']}_{pod['metadata']['namespace']}({pod['metadata']['uid']})"
    entries = []
    for each in status["containerStatuses"]:
        started = (each["state"].get("running") or {}).get("startedAt", time)
        message = f"back-off {_go_duration(wait_seconds)} restarting failed container={each['name']} pod={name}"
        entries.append(
            {
                **each,
                "state": {"waiting": {"reason": "CrashLoopBackOff", "message": message}},
                "lastState": {"terminated": _terminated(exit_code, started, time)},
                "ready": False,
                "started": False,
                "restartCount": each.get("restartCount", 0) + 1,
            }
        )
    status["containerStatuses"] = entries
    return status


def ended(pod: JsonObject, time: str, exit_code: int) -> JsonObject:
    """All containers have ended for good."""
    succeeded = exit_code == 0
    status = {**(pod.get("status") or {}), "phase": "Succeeded" if succeeded else "Failed"}
    reason = "PodCompleted" if succeeded else "PodFailed"
    entries = {"PodReadyToStartContainers": ("False", "", ""), "Initialized": ("True", reason if succeeded else "", "")}
    _conditions(status, time, **entries, Ready=("False", reason, ""), ContainersReady=("False", reason, ""))
    entries_after = []
    for each in status.get("containerStatuses") or ():
        started = (each["state"].get("running") or {}).get("startedAt", time)
        state = {"terminated": _terminated(exit_code, started, time)}
        entries_after.append({**each, "state": state, "ready": False, "started": False})
    if entries_after:
        status["containerStatuses"] = entries_after
    return status


def rejected(pod: JsonObject, time: str, reason: str, message: str) -> JsonObject:
    status = {key: value for key, value in (pod.get("status") or {}).items() if key in ("qosClass", "conditions")}
    return {
        **status,
        "phase": "Failed",
        "reason": reason,
        "message": f"Pod was rejected: {message}",
        "startTime": time,
    }


def overdue(pod: JsonObject, time: str) -> JsonObject:
    status = ended(pod, time, 137)
    message = "Pod was active on the node longer than the specified deadline"
    return {**status, "phase": "Failed", "reason": "DeadlineExceeded", "message": message}


def _base(pod: JsonObject, phase: str, host_ip: str) -> JsonObject:
    status = {**(pod.get("status") or {}), "phase": phase, "hostIP": host_ip, "hostIPs": [{"ip": host_ip}]}
    status.pop("nominatedNodeName", None)
    if pod["metadata"].get("generation"):
        status["observedGeneration"] = pod["metadata"]["generation"]
    return status


def _conditions(status: JsonObject, time: str, **new: tuple[str, str, str]) -> None:
    """Puts the conditions in the kubelet's order; the time of change stays where the status did not change."""
    known = {each["type"]: each for each in status.get("conditions") or ()}
    for kind, (value, reason, message) in new.items():
        old = known.get(kind)
        changed = time if old is None or old["status"] != value else old.get("lastTransitionTime", time)
        entry: JsonObject = {"type": kind, "status": value, "lastProbeTime": None, "lastTransitionTime": changed}
        if status.get("observedGeneration"):
            entry["observedGeneration"] = status["observedGeneration"]
        if reason:
            entry["reason"] = reason
        if message:
            entry["message"] = message
        known[kind] = entry
    order = [kind for kind in _ORDER if kind in known] + [kind for kind in known if kind not in _ORDER]
    status["conditions"] = [known[kind] for kind in order]


def _container(
    container: JsonObject, state: JsonObject, *, ready: bool, old: JsonObject | None = None, started: bool | None = None
) -> JsonObject:
    running = "running" in state
    entry: JsonObject = {"name": container["name"], "state": state, "lastState": (old or {}).get("lastState") or {}}
    entry |= {"ready": ready, "restartCount": (old or {}).get("restartCount", 0), "image": container.get("image", "")}
    entry |= {"imageID": "", "started": running if started is None else started}
    return entry


def _terminated(exit_code: int, started: str, finished: str) -> JsonObject:
    reason = "Completed" if exit_code == 0 else "Error"
    return {"exitCode": exit_code, "reason": reason, "startedAt": started, "finishedAt": finished}


def _names(pod: JsonObject) -> str:
    return " ".join(container["name"] for container in pod["spec"]["containers"])


def _go_duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"
