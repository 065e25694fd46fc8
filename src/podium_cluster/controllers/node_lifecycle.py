"""Taints nodes by their conditions, and turns a node that is no longer heard of Unknown.

Cordoned and pressed nodes get NoSchedule taints; one that is not ready or not reachable gets a NoExecute taint too, and
`tainteviction` sends its pods away. A node is heard of through its agent here in the process, or through its Lease; one
that has neither is left as it was written.
"""

from __future__ import annotations

from typing import Protocol

from podium.kube.json_object import JsonObject
from podium.kube.meta import parse_time
from podium.kube.node import Node
from podium_cluster.controllers.context import ControllerContext, copied
from podium_cluster.controllers.pods import Key

MONITOR_SECONDS = 5.0
GRACE_SECONDS = 50.0
NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"
PRESSURE = {
    "MemoryPressure": "node.kubernetes.io/memory-pressure",
    "DiskPressure": "node.kubernetes.io/disk-pressure",
    "PIDPressure": "node.kubernetes.io/pid-pressure",
    "NetworkUnavailable": "node.kubernetes.io/network-unavailable",
}
OURS = {NOT_READY, UNREACHABLE, UNSCHEDULABLE, *PRESSURE.values()}
KUBELET_CONDITIONS = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")


class Heartbeats(Protocol):
    def last_heartbeat(self, node: str) -> float | None:
        """When the node's agent was last heard of, None for a node without one."""


class NodeLifecycle:
    def __init__(self, context: ControllerContext, heartbeats: Heartbeats | None = None) -> None:
        self._context = context
        self._heartbeats = heartbeats
        self._recorder = context.recorder("node-controller")
        self._lane = context.lane("NodeTaints", self.sync)
        self._monitor = context.lane("NodeMonitor", self._look_at_all)
        self._monitoring = False
        context.watch_nodes(self._node_changed)

    def sync(self, key: Key) -> None:
        node = self._context.get("Node", "", key[1])
        if node is None:
            return
        spec = node.get("spec") or {}
        before = spec.get("taints") or []
        taints = taints_for(node, self._context.timestamp())
        if taints != before:
            node["spec"] = {**spec, "taints": taints}
            if not taints:
                del node["spec"]["taints"]
            self._context.update("Node", node)

    def _look_at_all(self, key: Key) -> None:
        for name, node in list(self._context.nodes.items()):
            last = self._heard(name)
            if last is not None and self._context.now() - last > GRACE_SECONDS and _ready(node) != "Unknown":
                self._lose(name)
        self._monitor.add_after(key, MONITOR_SECONDS)

    def _heard(self, name: str) -> float | None:
        last = self._heartbeats.last_heartbeat(name) if self._heartbeats is not None else None
        if last is not None:
            return last
        lease = self._context.api.store.get(self._context.kind("Lease"), "kube-node-lease", name)
        renewed = (lease.decode().get("spec") or {}).get("renewTime") if lease is not None else None
        return parse_time(renewed) if renewed else None

    def _lose(self, name: str) -> None:
        node = self._context.get("Node", "", name)
        if node is None:
            return
        status = copied(node.get("status") or {})
        was_ready = any(each["type"] == "Ready" and each["status"] == "True" for each in status.get("conditions") or ())
        now = self._context.timestamp()
        known = {each["type"]: each for each in status.get("conditions") or ()}
        for kind in KUBELET_CONDITIONS:
            old = known.get(kind)
            heard = old.get("lastHeartbeatTime") if old else node["metadata"].get("creationTimestamp")
            new = {"type": kind, "status": "Unknown", "lastHeartbeatTime": heard, "lastTransitionTime": now}
            reason, message = "NodeStatusUnknown", "Kubelet stopped posting node status."
            if old is None:
                reason, message = "NodeStatusNeverUpdated", "Kubelet never posted node status."
            known[kind] = new | {"reason": reason, "message": message}
        status["conditions"] = list(known.values())
        self._context.update_status("Node", node, status)
        if was_ready:
            self._recorder.normal(node, "NodeNotReady", f"Node {name} status is now: NodeNotReady")
            self._mark_pods(name)

    def _mark_pods(self, name: str) -> None:
        """The pods of a node that is lost no longer serve."""
        for view in self._context.pods.on_node(name):
            pod = self._context.get("Pod", *view.key) if view.ready else None
            if pod is None:
                continue
            for condition in pod["status"]["conditions"]:
                if condition["type"] == "Ready":
                    condition["status"] = "False"
                    condition["lastTransitionTime"] = self._context.timestamp()
            pod = self._context.update_status("Pod", pod, pod["status"])
            self._recorder.warning(pod, "NodeNotReady", "Node is not ready")

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        if not self._monitoring:
            self._monitoring = True
            self._monitor.add(("", ""))
        if new is None:
            return
        if old is None:
            about = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": new.name, "uid": new.uid}}
            message = f"Node {new.name} event: Registered Node {new.name} in Controller"
            self._recorder.normal(about, "RegisteredNode", message)
        if old is None or old.spec != new.spec or _statuses(old) != _statuses(new):
            self._lane.add(("", new.name))


def taints_for(node: JsonObject, now: str) -> list[JsonObject]:
    """The taints that the node should have: those of others, and ours as its conditions are."""
    spec = node.get("spec") or {}
    conditions = {each["type"]: each["status"] for each in (node.get("status") or {}).get("conditions") or ()}
    wanted: list[tuple[str, str]] = [(UNSCHEDULABLE, "NoSchedule")] if spec.get("unschedulable") else []
    trouble = {"False": NOT_READY, "Unknown": UNREACHABLE}.get(conditions.get("Ready", ""))
    if trouble is not None:
        wanted += [(trouble, "NoSchedule"), (trouble, "NoExecute")]
    wanted += [(taint, "NoSchedule") for kind, taint in PRESSURE.items() if conditions.get(kind) == "True"]
    before: list[JsonObject] = spec.get("taints") or []
    taints = [each for each in before if each["key"] not in OURS or (each["key"], each["effect"]) in wanted]
    present = {(each["key"], each["effect"]) for each in taints}
    for key, effect in wanted:
        if (key, effect) not in present:
            taints.append({"key": key, "effect": effect, "timeAdded": now})
    return taints


def _ready(node: Node) -> str:
    return next((each.status for each in node.status.conditions if each.type == "Ready"), "")


def _statuses(node: Node) -> list[tuple[str, str]]:
    return [(each.type, each.status) for each in node.status.conditions]
