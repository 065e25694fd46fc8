"""Prefers nodes that pods are leaving, and avoids those that pods are nominated to (PodState).

    raw = pods on the node that are being deleted − pods nominated to the node
    score = (raw − lowest)·100 ÷ (highest − lowest), 0 for all where nodes are equal

Surprise: both change rarely while pods are placed, so the answer key counts their changes and the answers about all
nodes hold until one of them moves.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final

import numpy as np

from podium import MAX_SCORE, Cycle, DependsOn, Handle, Plugin, Scores
from podium.cluster import Cluster, NodeInfo, Nodes, PlacedPod
from podium.kube import Pod

NAME: Final = "PodState"


class TerminatingPods:
    """Counts the pods being deleted on each row; a `PodAccount`."""

    def __init__(self, cluster: Cluster) -> None:
        self.on_row: dict[int, int] = {}
        self.version = 0
        """Moves whenever a count does."""
        cluster.follow_pods(self)

    @staticmethod
    def of(cluster: Cluster) -> TerminatingPods:
        return cluster.account(TerminatingPods) or TerminatingPods(cluster)

    def pod_added(self, placed: PlacedPod) -> None:
        if placed.pod_class.terminating:
            self._count(placed.row, 1)

    def pod_removed(self, placed: PlacedPod) -> None:
        if placed.pod_class.terminating:
            self._count(placed.row, -1)

    def _count(self, row: int, sign: int) -> None:
        self.version += 1
        number = self.on_row.get(row, 0) + sign
        if number:
            self.on_row[row] = number
        else:
            del self.on_row[row]


class PodState(Plugin):
    name = NAME
    trusted = True
    depends_on = DependsOn(claims=False, kinds=())

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        self._terminating = TerminatingPods.of(handle.cluster)

    def answer_key(self, pod: Pod) -> Hashable:
        return self._terminating.version, self.handle.nominator.changes.version

    def score(self, cycle: Cycle, nodes: Nodes) -> Scores | int:
        cluster, nominator = cycle.cluster, self.handle.nominator
        nominated = nominator.nodes()
        if not self._terminating.on_row and not nominated:
            return 0
        raw = np.zeros(cluster.columns.rows, dtype=np.int64)
        for row, number in self._terminating.on_row.items():
            raw[row] = number
        for name in nominated:
            row = cluster.row_of.get(name, -1)
            if row >= 0:
                raw[row] -= len(nominator.on(name))
        scores: Scores = nodes.pick(raw)
        return scores

    def score_node(self, cycle: Cycle, node: NodeInfo) -> int:
        return self._terminating.on_row.get(node.row, 0) - len(self.handle.nominator.on(node.name))

    def normalize(self, _cycle: Cycle, _nodes: Nodes, scores: Scores) -> Scores:
        if not len(scores):
            return scores
        lowest = int(scores.min())
        span = int(scores.max()) - lowest
        return (scores - lowest) * MAX_SCORE // span if span else np.zeros_like(scores)
