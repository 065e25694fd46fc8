"""Keeps pods off nodes with taints that they do not tolerate (TaintToleration).

A NoSchedule or NoExecute taint that the pod does not tolerate rules the node out. Each PreferNoSchedule taint it does
not tolerate makes the node less liked:

    raw = number of PreferNoSchedule taints not tolerated;  score = 100 − 100·raw/max

so that without any such taint every node scores 100, not 0. Which taint ruled a node out is not part of the reason.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from podium.cluster import NodeInfo, Nodes
from podium.framework import (
    Action,
    Cycle,
    DependsOn,
    Interest,
    NodePart,
    Normalizer,
    Plugin,
    PluginError,
    Resource,
    Scores,
    Status,
    Verdict,
)
from podium.kube import Node, Pod, Taint, Toleration
from podium.kube.toleration import PREFER_NO_SCHEDULE, tolerated, untolerated

NAME = "TaintToleration"
PRE_SCORE = f"PreScore{NAME}"
UNTOLERATED = Status.unresolvable("node(s) had untolerated taint(s)")


class TaintToleration(Plugin):
    name = NAME
    trusted = True
    depends_on = DependsOn(node=NodePart.OBJECT, claims=False)
    normalizer = Normalizer.REVERSED

    def interests(self) -> Iterable[Interest]:
        return [
            Interest(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT, _lets_the_pod_in, by_signature=True),
            Interest(Resource.POD, Action.UPDATE_POD_TOLERATION, _is_same_pod, by_signature=True),
        ]

    def filter(self, cycle: Cycle, nodes: Nodes) -> Verdict | None:
        pod = cycle.pod
        if not nodes.any_taints(lambda taints: _repels(taints, pod)):
            return None
        return Verdict.reject(nodes.ask_taints(lambda taints: _repels(taints, pod), np.bool_), UNTOLERATED)

    def filter_node(self, cycle: Cycle, node: NodeInfo) -> Status | None:
        return UNTOLERATED if _repels(node.node.taints, cycle.pod) else None

    def pre_score(self, cycle: Cycle, _nodes: Nodes) -> None:
        cycle.data[PRE_SCORE] = cycle.pod.spec.tolerations

    def score(self, cycle: Cycle, nodes: Nodes) -> Scores | int:
        tolerations: tuple[Toleration, ...] | None = cycle.data.get(PRE_SCORE)
        if tolerations is None:
            raise PluginError(f'failed to read "{PRE_SCORE}" from cycleState: not found')
        if not nodes.any_taints(lambda taints: _disliked(taints, tolerations)):
            return 0
        return nodes.ask_taints(lambda taints: _disliked(taints, tolerations), np.int64)


def _repels(taints: tuple[Taint, ...], pod: Pod) -> bool:
    return untolerated(taints, pod.spec.tolerations) is not None


def _disliked(taints: tuple[Taint, ...], tolerations: tuple[Toleration, ...]) -> int:
    return sum(taint.effect == PREFER_NO_SCHEDULE and not tolerated(taint, tolerations) for taint in taints)


def _lets_the_pod_in(pod: Pod, before: Node | None, after: Node) -> bool:
    return (before is None or _repels(before.taints, pod)) and not _repels(after.taints, pod)


def _is_same_pod(pod: Pod, _before: Pod | None, after: Pod) -> bool:
    return after.uid == pod.uid
