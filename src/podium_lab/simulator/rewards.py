"""Gives pods their rewards in a simulation: how a pod fares on its node, a while after it got there.

    reward = 1 − Σ cost·load² − cost of the node's labels + noise, within 0–1, three decimals

Load is that of the last measurement. The costs are those of the last phase that has begun. The reward is written into
the pod's annotation, where whatever measures applications would write it on a cluster.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from podium.cluster import Cluster
from podium.config.durations import SECOND
from podium_lab.simulator.distributions import sampler
from podium_lab.simulator.scenario import RewardPhase, RewardRules
from podium_lab.simulator.usage import UsageMeter


class RewardGiver:
    """The rewards of one run."""

    def __init__(self, rules: RewardRules, usage: UsageMeter, cluster: Cluster, rng: np.random.Generator) -> None:
        self._rules = rules
        self._usage = usage
        self._cluster = cluster
        streams = [np.random.default_rng(each) for each in rng.integers(2**63, size=2)]
        self.delay: Callable[[], float] = sampler(rules.after, streams[0], time=True)
        """Seconds from the binding of a pod to its reward, the next pod's each time."""
        self._noise = streams[1]
        self._total = self._given = 0.0
        self._recent = self._recent_given = 0.0

    def reward(self, node_name: str, time: float) -> float:
        """The reward of a pod on a node."""
        row, phase = self._cluster.row_of[node_name], self._phase(time)
        cpu, memory, network = self._usage.load_of(row)
        traffic = min(network / self._rules.network_full, 1.0)
        cost = phase.cpu * cpu * cpu + phase.memory * memory * memory + phase.network * traffic * traffic
        node = self._cluster.nodes[row]
        if node is not None:
            labels = node.metadata.labels.items()
            cost += sum(phase.labels.get(f"{key}={value}", 0.0) for key, value in labels)
        noise = self._rules.noise * float(self._noise.standard_normal())
        reward = round(min(max(1 - cost + noise, 0.0), 1.0), 3)
        self._total += reward
        self._given += 1
        self._recent += reward
        self._recent_given += 1
        return reward

    def figures(self) -> tuple[float, float]:
        """The mean reward so far, and in percent that since the figures were last asked for."""
        mean = self._total / self._given if self._given else math.nan
        recent = 100 * self._recent / self._recent_given if self._recent_given else math.nan
        self._recent = self._recent_given = 0.0
        return mean, recent

    def _phase(self, time: float) -> RewardPhase:
        begun = [phase for phase in self._rules.phases if phase.at / SECOND <= time]
        return begun[-1] if begun else RewardPhase()
