"""Evicts pods that do not tolerate a NoExecute taint, at once or when their tolerationSeconds have passed.

A pod that says nothing about not-ready and unreachable nodes stays for five minutes: in other clusters the API server
writes that toleration into every pod.
"""

from __future__ import annotations

from collections.abc import Sequence

from podium.kube.node import Node, Taint
from podium.kube.toleration import NO_EXECUTE, tolerates
from podium_cluster.controllers.conditions import condition
from podium_cluster.controllers.context import ControllerContext
from podium_cluster.controllers.node_lifecycle import NOT_READY, UNREACHABLE
from podium_cluster.controllers.pods import Key, PodView

DEFAULT_SECONDS = 300.0


class TaintEviction:
    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._recorder = context.recorder("taint-eviction-controller")
        self._lane = context.lane("TaintEviction", self.sync)
        self._since: dict[str, float] = {}
        """When the time of each pod that has to leave began, by uid."""
        context.watch_nodes(self._node_changed)
        context.watch_pods(self._pod_changed)

    def sync(self, key: Key) -> None:
        pod = self._context.pods.all.get(key)
        node = self._context.nodes.get(pod.spec.node_name) if pod is not None else None
        if pod is None:
            return
        wait = patience(pod, node.taints) if node is not None and not pod.terminating else None
        if wait is None:
            self._since.pop(pod.metadata.uid, None)
            return
        left = self._since.setdefault(pod.metadata.uid, self._context.now()) + wait - self._context.now()
        if left > 0:
            self._lane.add_after(key, left)
            return
        metadata = {"namespace": key[0], "name": key[1], "uid": pod.metadata.uid}
        about = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
        self._recorder.normal(about, "TaintManagerEviction", f"Marking for deletion Pod {key[0]}/{key[1]}")
        reason = ("DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint")
        mark_disrupted(self._context, key, *reason)
        self._context.delete("Pod", *key)

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        if new is not None and (old is None or old.taints != new.taints):
            for pod in self._context.pods.on_node(new.name):
                self._lane.add(pod.key)

    def _pod_changed(self, old: PodView | None, new: PodView | None) -> None:
        if new is None and old is not None:
            self._since.pop(old.metadata.uid, None)
        if new is not None and new.spec.node_name and (old is None or not old.spec.node_name):
            node = self._context.nodes.get(new.spec.node_name)
            if node is not None and any(taint.effect == NO_EXECUTE for taint in node.taints):
                self._lane.add(new.key)


def patience(pod: PodView, taints: Sequence[Taint]) -> float | None:
    """Seconds for which the pod may stay; None: as long as it likes."""
    shortest: float | None = None
    for taint in taints:
        if taint.effect != NO_EXECUTE:
            continue
        matching = [each for each in pod.spec.tolerations if tolerates(each, taint)]
        if not matching:
            wait = DEFAULT_SECONDS if taint.key in (NOT_READY, UNREACHABLE) else 0.0
        else:
            limits = [each.toleration_seconds for each in matching if each.toleration_seconds is not None]
            if not limits:
                continue
            wait = float(max(0, min(limits)))
        shortest = wait if shortest is None else min(shortest, wait)
    return shortest


def mark_disrupted(context: ControllerContext, key: Key, reason: str, message: str, *, phase: str = "") -> None:
    """Notes on the pod why it is taken away."""
    pod = context.get("Pod", *key)
    if pod is None:
        return
    new = {**(pod.get("status") or {}), **({"phase": phase} if phase else {})}
    if condition(new, "DisruptionTarget") is None:
        entry = {"type": "DisruptionTarget", "status": "True", "lastProbeTime": None}
        entry |= {"lastTransitionTime": context.timestamp(), "reason": reason, "message": message}
        new["conditions"] = [*(new.get("conditions") or ()), entry]
    if new != pod.get("status"):
        context.update_status("Pod", pod, new)
