"""Prefers nodes on which pods of the same type have fared well (RewardBias).

    points = ⌊10·reward⌋ of the pod's type on the node; score = 10·points

The type is the pod's label `podtype`, `app` or `name`, or else its name. Rewards are those of `rewards`, learnt from
what `lessons` reads in the state of all pods, whichever scheduler placed them. They are kept in a ConfigMap
(`namespace`, `configMap`; REWARD_NAMESPACE, REWARD_CONFIG_MAP), so they outlive the process. Where nothing is known all
nodes get 10 points.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from podium.cluster import NodeInfo, Nodes
from podium.framework import Cycle, DependsOn, Handle, NodePart, Plugin, PluginError, Scores
from podium.framework.environment import filled
from podium.framework.pod_outcomes import ConfigMapName, LearnedState, learn
from podium.kube import Pod
from podium_lab.reward.lessons import type_of
from podium_lab.reward.rewards import CONFIG_MAP, NAMESPACE, VARIABLES, RewardBiasArgs, Rewards

NAME = "RewardBias"
POINTS = 10
"""Points go from 0 to 10; each counts 10 in a score."""


class RewardBias(Plugin):
    name = NAME
    trusted = True
    Args = RewardBiasArgs
    depends_on = DependsOn(node=NodePart.OBJECT, claims=False)
    learned_state = LearnedState(ConfigMapName(NAMESPACE, CONFIG_MAP), VARIABLES["config_map"], VARIABLES["namespace"])

    def __init__(self, args: RewardBiasArgs, handle: Handle) -> None:
        super().__init__(filled(args, VARIABLES), handle)
        settings: RewardBiasArgs = self.args
        config_map = ConfigMapName(settings.namespace or NAMESPACE, settings.config_map or CONFIG_MAP)
        self.rewards = learn(handle, config_map, lambda: Rewards(settings, self._node_names))
        if self.rewards.args != settings:
            where = f"{config_map.namespace}/{config_map.name}"
            raise PluginError(f"profiles with different settings learn into the ConfigMap {where}; give each its own")

    def answer_key(self, pod: Pod) -> Hashable:
        kind = type_of(pod.metadata.labels, pod.metadata.name)  # where it is the name, equal pods differ in it
        return kind, self.rewards.generation(kind)

    def score(self, cycle: Cycle, nodes: Nodes) -> Scores | int:
        """Only the nodes of which something is known are looked at one by one."""
        kind = type_of(cycle.pod.metadata.labels, cycle.pod.metadata.name)
        rewards, cluster = self.rewards, cycle.cluster
        column = np.full(cluster.columns.rows, POINTS * rewards.points(kind, ""), dtype=np.int64)
        if self.args.compat:
            column[:] = [POINTS * rewards.points(kind, name) for name in cluster.names]
        for name, reward in rewards.known(kind).items():
            row = cluster.row_of.get(name)
            if row is not None:
                column[row] = POINTS * reward.points
        scores: Scores = nodes.pick(column)
        return scores

    def score_node(self, cycle: Cycle, node: NodeInfo) -> int:
        kind = type_of(cycle.pod.metadata.labels, cycle.pod.metadata.name)
        return POINTS * self.rewards.points(kind, node.name)

    def _node_names(self) -> list[str]:
        cluster = self.handle.cluster
        return [cluster.names[row] for row in cluster.order.rows]
