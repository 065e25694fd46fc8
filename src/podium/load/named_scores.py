"""Scores nodes by their names, from scores found for all of them at once whenever something new is measured."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping

import numpy as np

from podium.cluster import NodeInfo, Nodes
from podium.framework import Cycle, DependsOn, NodePart, Plugin, Scores
from podium.kube import Pod
from podium.load.readings import GenerationCounter, Readings


class NamedScores:
    """Scores by name of node. `find()` gives them, and that of nodes it does not name; `generation` counts changes."""

    def __init__(self, generation: GenerationCounter, find: Callable[[], tuple[Mapping[str, int], int]]) -> None:
        self.generation = generation
        self._find = find
        self._scores = Readings()
        self._missing = 0
        self._seen = -1

    def over(self, nodes: Nodes) -> Scores | int:
        scores = self._refreshed()
        if not scores.values:
            return self._missing
        column = nodes.pick(scores.column(nodes.cluster))
        known: Scores = np.where(np.isnan(column), self._missing, column).astype(np.int64)
        return known

    def of(self, name: str) -> int:
        return int(self._refreshed().values.get(name, self._missing))

    def _refreshed(self) -> Readings:
        if self._seen != self.generation.count:
            self._seen = self.generation.count
            scores, self._missing = self._find()
            self._scores.write({name: float(score) for name, score in scores.items()}, float(self._seen))
        return self._scores


class NamedScorePlugin(Plugin):
    """A plugin whose scores are `NamedScores`; what differs between such plugins is how scores are found."""

    depends_on = DependsOn(node=NodePart.OBJECT, claims=False)
    scores: NamedScores

    def answer_key(self, pod: Pod) -> Hashable:
        return self.scores.generation.count

    def score(self, cycle: Cycle, nodes: Nodes) -> Scores | int:
        return self.scores.over(nodes)

    def score_node(self, cycle: Cycle, node: NodeInfo) -> int:
        return self.scores.of(node.name)
