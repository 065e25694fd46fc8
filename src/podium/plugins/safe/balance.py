"""SafeBalance: nodes with low and steady usage first.

    points = ⌊10·(1 − (mu + √sigma)/2) + ½⌋, the fewer of cpu and memory; score = 10·points

mu and sigma are mean and deviation of the node's utilisation with the pod on it (see `utilization`); √sigma is the root
of the deviation, which tells small deviations apart better. A node of which nothing is known scores 0.
"""

from __future__ import annotations

import numpy as np

from podium.cluster import Nodes
from podium.framework import Cycle, Handle, Plugin, Scope, Scores
from podium.framework.environment import filled
from podium.plugins.safe.settings import BALANCE_VARIABLES, FORECAST_WEIGHT, SafeBalanceArgs, share
from podium.plugins.safe.utilization import Utilization, demand_of, lowest

NAME = "SafeBalance"
POINTS = 10
"""Points go from 0 to 10; each counts 10 in a score."""


class SafeBalance(Plugin):
    name = NAME
    Args = SafeBalanceArgs
    score_scope = Scope.NODE
    sees_claims = False

    def __init__(self, args: SafeBalanceArgs, handle: Handle) -> None:
        super().__init__(filled(args, BALANCE_VARIABLES), handle)
        self._utilization = Utilization(share(self.args.forecast_weight, FORECAST_WEIGHT))

    def score(self, cycle: Cycle, nodes: Nodes) -> Scores:
        mu, sigma = self._utilization.of(nodes, demand_of(cycle.pod))
        strain = (mu + np.sqrt(sigma)) / 2
        return POINTS * lowest(np.trunc(POINTS * (1 - strain) + 0.5))
