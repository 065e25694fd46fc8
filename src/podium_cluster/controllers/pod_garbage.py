"""Deletes pods that no other controller cleans up: those of nodes that are gone, those deleted before they had a node,
and the oldest of very many that have ended."""

from __future__ import annotations

from podium.kube.node import Node
from podium_cluster.controllers.context import ControllerContext
from podium_cluster.controllers.pods import Key, PodView
from podium_cluster.controllers.taint_eviction import mark_disrupted

CHECK_SECONDS = 20.0
QUARANTINE_SECONDS = 40.0
FINISHED_LIMIT = 12_500


class PodGarbage:
    def __init__(self, context: ControllerContext) -> None:
        self._context = context
        self._lane = context.lane("PodGarbage", self.sync)
        self._check = context.lane("PodGarbageCheck", self._look_at_all)
        self._checking = False
        context.watch_nodes(self._node_changed)
        context.watch_pods(self._pod_changed)

    def sync(self, key: Key) -> None:
        pod = self._context.pods.all.get(key)
        if pod is None or not pod.spec.node_name or pod.spec.node_name in self._context.nodes:
            return
        if not pod.finished:
            mark_disrupted(self._context, key, "DeletionByPodGC", "PodGC: node no longer exists", phase="Failed")
        self._context.delete("Pod", *key, grace_seconds=0)

    def _look_at_all(self, key: Key) -> None:
        finished = [pod for pod in self._context.pods.all.values() if pod.finished and not pod.terminating]
        finished.sort(key=lambda pod: (pod.metadata.creation_timestamp or "", pod.name))
        for pod in finished[: max(0, len(finished) - FINISHED_LIMIT)]:
            self._context.delete("Pod", *pod.key, grace_seconds=0)
        for pod in list(self._context.pods.all.values()):
            if pod.terminating and not pod.spec.node_name:
                self._context.delete("Pod", *pod.key, grace_seconds=0)
        self._check.add_after(key, CHECK_SECONDS)

    def _node_changed(self, old: Node | None, new: Node | None) -> None:
        if new is None and old is not None:
            for pod in self._context.pods.on_node(old.name):
                self._lane.add_after(pod.key, QUARANTINE_SECONDS)

    def _pod_changed(self, old: PodView | None, new: PodView | None) -> None:
        if not self._checking:
            self._checking = True
            self._check.add(("", ""))
        if new is None or not new.spec.node_name or (old is not None and old.spec.node_name):
            return
        if new.spec.node_name not in self._context.nodes:
            self._lane.add_after(new.key, QUARANTINE_SECONDS)
