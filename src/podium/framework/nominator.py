"""Tracks pods that were promised a node by preemption but wait for their victims to leave.

Until such a pod is placed, pods of lower priority must not take the room that is being made for it: filters on its
nominated node count it as if it were there already. Where the queue has an order of its own that moves with time, that
order decides instead of priorities.
"""

from __future__ import annotations

from collections.abc import Callable

from podium.cluster import Journal
from podium.kube import Pod


class Nominator:
    """The pods that are nominated to nodes, which filters count as if they were there already."""

    def __init__(self, outranks: Callable[[Pod, Pod], bool] | None = None) -> None:
        """`outranks` says whether a pod need not leave room for another; by priority where it is not given."""
        self.outranks = outranks
        self._by_node: dict[str, dict[str, Pod]] = {}
        self._node_of: dict[str, str] = {}
        self.changes: Journal[str] = Journal()
        """Nodes to which a pod was nominated, or no longer is."""

    def nominate(self, pod: Pod, node_name: str | None = None) -> None:
        """Note a pod for a node (its own status' when none is given); an empty name removes the note."""
        self.remove(pod.uid)
        node = pod.status.nominated_node_name if node_name is None else node_name
        if node:
            self._by_node.setdefault(node, {})[pod.uid] = pod
            self._node_of[pod.uid] = node
            self.changes.append(node)

    def remove(self, uid: str) -> None:
        node = self._node_of.pop(uid, None)
        if node is not None:
            self.changes.append(node)
            del self._by_node[node][uid]
            if not self._by_node[node]:
                del self._by_node[node]

    def node_of(self, uid: str) -> str | None:
        return self._node_of.get(uid)

    def nodes(self) -> list[str]:
        """The nodes some pod is nominated to."""
        return list(self._by_node)

    def on(self, node_name: str) -> list[Pod]:
        return list(self._by_node.get(node_name, {}).values())

    def rivals(self, pod: Pod, node_name: str) -> list[Pod]:
        """Nominated pods on the node that a pod must leave room for: of at least its priority, or by another order."""
        others = self._by_node.get(node_name)
        if others is None:
            return []
        if self.outranks is not None:
            return [other for other in others.values() if other.uid != pod.uid and not self.outranks(pod, other)]
        return [other for other in others.values() if other.priority >= pod.priority and other.uid != pod.uid]
