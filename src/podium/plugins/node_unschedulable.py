"""Keeps pods off cordoned nodes unless they tolerate being there (NodeUnschedulable).

`kubectl cordon` sets `spec.unschedulable`; a pod gets past it by tolerating the taint
`node.kubernetes.io/unschedulable:NoSchedule`, whether or not the node carries that taint.
"""

from __future__ import annotations

from collections.abc import Iterable

from podium.cluster import NodeInfo, Nodes
from podium.framework import Action, Cycle, DependsOn, Interest, NodePart, Plugin, Resource, Status, Verdict
from podium.kube import Node, Pod, Taint
from podium.kube.toleration import NO_SCHEDULE, tolerated

NAME = "NodeUnschedulable"
UNSCHEDULABLE = Status.unresolvable("node(s) were unschedulable")
CORDON = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)


class NodeUnschedulable(Plugin):
    name = NAME
    trusted = True
    depends_on = DependsOn(node=NodePart.OBJECT, claims=False)

    def interests(self) -> Iterable[Interest]:
        return [
            Interest(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT, _opens_a_node, by_signature=True),
            Interest(Resource.POD, Action.UPDATE_POD_TOLERATION, _tolerates_now, by_signature=True),
        ]

    def filter(self, cycle: Cycle, nodes: Nodes) -> Verdict | None:
        cordoned = nodes.unschedulable
        if not cordoned.any() or tolerated(CORDON, cycle.pod.spec.tolerations):
            return None
        return Verdict.reject(cordoned, UNSCHEDULABLE)

    def filter_node(self, cycle: Cycle, node: NodeInfo) -> Status | None:
        refused = node.node.unschedulable and not tolerated(CORDON, cycle.pod.spec.tolerations)
        return UNSCHEDULABLE if refused else None


def _opens_a_node(_pod: Pod, before: Node | None, after: Node) -> bool:
    return not after.unschedulable and (before is None or before.unschedulable)


def _tolerates_now(pod: Pod, _before: Pod | None, after: Pod) -> bool:
    return after.uid == pod.uid and tolerated(CORDON, after.spec.tolerations)
