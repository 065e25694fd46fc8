"""Prefers nodes with low and steady usage (SafeBalance).

    points = ⌊10·(1 − (mu + √sigma)/2) + ½⌋, the fewer of cpu and memory; score = 10·points

mu and sigma are mean and deviation of the node's utilisation with the pod on it (see `utilization`); √sigma is the root
of the deviation, which tells small deviations apart better. A node of which nothing is known scores 0.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable

import numpy as np

from podium import Cycle, DependsOn, Handle, NodePart, Plugin, Scores, filled
from podium.cluster import Nodes
from podium.kube import Pod
from podium_plugins.safe.settings import BALANCE_VARIABLES, FORECAST_WEIGHT, SafeBalanceArgs, seconds, share
from podium_plugins.safe.utilization import RESOURCES, Utilization, demand_of, lowest

NAME = "SafeBalance"
POINTS = 10
"""Points go from 0 to 10; each counts 10 in a score."""

_log = logging.getLogger(__name__)


class SafeBalance(Plugin):
    name = NAME
    trusted = True
    Args = SafeBalanceArgs
    depends_on = DependsOn(node=NodePart.OBJECT, claims=False)

    def __init__(self, args: SafeBalanceArgs, handle: Handle) -> None:
        super().__init__(filled(args, BALANCE_VARIABLES), handle)
        settings: SafeBalanceArgs = self.args
        weight = share(settings.forecast_weight, FORECAST_WEIGHT)
        self._utilization = Utilization(weight, seconds(settings.max_age), handle.clock)

    def answer_key(self, pod: Pod) -> Hashable:
        return self._utilization.age_mark(self.handle.cluster)

    def score(self, cycle: Cycle, nodes: Nodes) -> Scores:
        mu, sigma = self._utilization.of(nodes, demand_of(cycle.pod))
        strain = (mu + np.sqrt(sigma)) / 2
        if _log.isEnabledFor(logging.DEBUG):
            for position, row in enumerate(nodes.rows.tolist()):
                found = ", ".join(
                    f"{resource} mu={mu[number, position]:.4f} sigma={sigma[number, position]:.4f} "
                    f"strain={strain[number, position]:.4f}"
                    for number, resource in enumerate(RESOURCES)
                )
                _log.debug("%s: pod %s on node %s: %s", NAME, cycle.pod.key, nodes.cluster.names[row], found)
        return POINTS * lowest(np.trunc(POINTS * (1 - strain) + 0.5))
