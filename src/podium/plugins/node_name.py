"""Keeps a pod that names its node to that node (NodeName).

Pods that name a node are normally bound already and never scheduled; the filter matters to those who ask about such a
pod, as an extender's caller or an explanation does.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from podium.cluster import Nodes
from podium.framework import Action, Cycle, DependsOn, Interest, NodePart, Plugin, Resource, Status, Verdict

NAME = "NodeName"
OTHER_NODE = Status.unresolvable("node(s) didn't match the requested node name")


class NodeName(Plugin):
    name = NAME
    trusted = True
    depends_on = DependsOn(node=NodePart.OBJECT, claims=False)

    def interests(self) -> Iterable[Interest]:
        return [Interest(Resource.NODE, Action.ADD)]

    def pre_filter(self, cycle: Cycle) -> frozenset[str] | None:
        """From 1.37 on, no other node is looked at."""
        wanted = cycle.pod.node_name
        return frozenset((wanted,)) if wanted and self.handle.rules.node_name_pre_filters else None

    def filter(self, cycle: Cycle, nodes: Nodes) -> Verdict | None:
        wanted = cycle.pod.node_name
        if not wanted:
            return None
        elsewhere = nodes.rows != nodes.cluster.row_of.get(wanted, -1)
        return Verdict.reject(np.asarray(elsewhere), OTHER_NODE)
