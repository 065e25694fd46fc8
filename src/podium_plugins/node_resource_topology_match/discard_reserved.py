"""Leaves out nodes while a pod is on its way to them (discard-reserved cache).

From Reserve until the pod is bound, or taken back, what is known of its node must not be used.
"""

from __future__ import annotations

from podium.cluster import Cluster
from podium.framework import Scope
from podium.framework.object_problems import ObjectProblems
from podium.kube import Pod
from podium_plugins.node_resource_topology_match.pass_through import PassThroughCache


class DiscardReservedCache(PassThroughCache):
    """The newest report of each node without pods on their way to it."""

    scope = Scope.PODS

    def __init__(self, cluster: Cluster, problems: ObjectProblems) -> None:
        super().__init__(cluster, problems)
        self._on_the_way: dict[str, set[str]] = {}
        self._renewed = ""

    def reserve(self, pod: Pod, node_name: str) -> None:
        self._on_the_way.setdefault(node_name, set()).add(pod.uid)
        self.zones.set_stale(node_name, True)

    def release(self, pod: Pod, node_name: str) -> None:
        waiting = self._on_the_way.get(node_name)
        if waiting is None:
            return
        waiting.discard(pod.uid)
        if not waiting:
            del self._on_the_way[node_name]
            self.zones.set_stale(node_name, False)

    def observe(self, before: Pod | None, after: Pod | None) -> None:
        """A pod that the API server shows on its node is bound, even if the answer to the binding is still awaited."""
        self._renewed = ""
        if after is not None and after.node_name:
            self.release(after, after.node_name)
            if before is None or not before.node_name:
                self._renewed = after.node_name

    def renewed(self, node_name: str) -> bool:
        return self._renewed == node_name
