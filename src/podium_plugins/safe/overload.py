"""Refuses nodes on which usage may well exceed a threshold, and prefers those where it hardly will (SafeOverload).

    filter   a node is refused when for cpu or memory risk > ε
    score    f = risk/ε; points = ⌊10·(1 − √f)⌋, none where f ≥ 1; the fewer of cpu and memory; score = 10·points

The risk is that of `overload_risks`, for the utilisation of `utilization` with the pod on the node. T is the argument
`utilization` (SAFEUTILIZATION, 90 %), ε `percentile` (SAFEPERCENTILE, 30 %), the weight of a forecast `forecastWeight`
(SAFEFORECASTWEIGHT, 20 %). A resource of which nothing is known refuses no node and does not count in the score; a node
of which nothing is known scores 0. What was measured longer ago than `maxAge`, if that is set, is not known. With
ε = 0, a node scores in full where there is no risk at all.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Hashable, Iterable

import numpy as np

from podium import (
    Action,
    Cycle,
    DependsOn,
    Handle,
    Interest,
    NodePart,
    Plugin,
    Resource,
    Scores,
    Status,
    Verdict,
    filled,
)
from podium.cluster import Cluster, Nodes
from podium.kube import Pod
from podium.load import Floats, probabilities, probability
from podium_plugins.safe.settings import (
    FORECAST_WEIGHT,
    OVERLOAD_VARIABLES,
    PERCENTILE,
    UTILIZATION,
    SafeOverloadArgs,
    seconds,
    share,
)
from podium_plugins.safe.utilization import RESOURCES, Demand, Utilization, demand_of, lowest

NAME = "SafeOverload"
REASON = "node(s) had a risk of {} overload above {:g} percent"
POINTS = 10
"""Points go from 0 to 10; each counts 10 in a score."""


_log = logging.getLogger(__name__)


STEADY = 1e-6
"""A smaller deviation is none."""


def overload_risks(mu: Floats, sigma: Floats, threshold: float) -> Floats:
    """The risk that a node's utilisation, with mean mu and deviation sigma, exceeds a threshold T, for each mu with its
    sigma; NaN where mu is.

    Utilisation is taken to follow the Beta distribution with these moments: with k = mu·(1 − mu)/sigma² − 1 it has the
    parameters mu·k and (1 − mu)·k, and the risk is 1 − I_T. Without deviation the risk is 0 up to the threshold and 1
    beyond it. Moments that no Beta distribution has (sigma² ≥ mu·(1 − mu)) count as full risk.
    """
    spread, room = sigma * sigma, mu * (1 - mu)
    steady = sigma < STEADY
    risks = np.where(steady & (mu <= threshold), 0.0, 1.0)
    risks[mu == 0] = 0.0
    risks[np.isnan(mu)] = np.nan
    fits = ~steady & (mu > 0) & (spread < room)
    mean = mu[fits]
    k = np.maximum(room[fits] / spread[fits] - 1, np.finfo(np.float64).tiny)
    risks[fits] = 1 - probabilities(np.full(len(mean), threshold), mean * k, (1 - mean) * k)
    return risks


class SafeOverload(Plugin):
    name = NAME
    trusted = True
    Args = SafeOverloadArgs
    depends_on = DependsOn(node=NodePart.OBJECT, claims=False)

    def __init__(self, args: SafeOverloadArgs, handle: Handle) -> None:
        super().__init__(filled(args, OVERLOAD_VARIABLES), handle)
        settings: SafeOverloadArgs = self.args
        self._threshold = share(settings.utilization, UTILIZATION)
        self._acceptable = share(settings.percentile, PERCENTILE)
        weight = share(settings.forecast_weight, FORECAST_WEIGHT)
        self._utilization = Utilization(weight, seconds(settings.max_age), handle.clock)
        self._refusals = [
            Status.unresolvable(REASON.format(resource, 100 * self._acceptable)) for resource in RESOURCES
        ]
        self._known_for: tuple[Cluster, int, Hashable, Demand] | None = None
        self._known: Floats
        """The risks of all rows, as found last: scoring asks about the nodes that filtering has just looked at."""

    def interests(self) -> Iterable[Interest]:
        return [Interest(Resource.NODE, Action.ADD | Action.UPDATE_NODE_ANNOTATION | Action.UPDATE_NODE_ALLOCATABLE)]

    def answer_key(self, pod: Pod) -> Hashable:
        return self._utilization.age_mark(self.handle.cluster)

    def filter(self, cycle: Cycle, nodes: Nodes) -> Verdict | None:
        refused = self.risks(cycle, nodes) > self._acceptable
        if not refused.any():
            return None
        return Verdict.first_of(*zip(refused, self._refusals, strict=True))

    def score(self, cycle: Cycle, nodes: Nodes) -> Scores:
        risks = self.risks(cycle, nodes)
        if self._acceptable:
            shares = np.minimum(risks / self._acceptable, 1.0)
        else:
            shares = np.where(np.isnan(risks), np.nan, np.where(risks > 0, 1.0, 0.0))
        return POINTS * lowest(np.trunc(POINTS * (1 - np.sqrt(shares))))

    def risks(self, cycle: Cycle, nodes: Nodes) -> Floats:
        """float64[resource, node]: the risk of cpu and of memory overload with the pod; NaN where nothing is known."""
        cluster, demand = nodes.cluster, demand_of(cycle.pod)
        if _log.isEnabledFor(logging.DEBUG):
            self._log_risks(cycle.pod.key, nodes, demand)
        wanted_for = (cluster, cluster.node_changes.version, self._utilization.age_mark(cluster), demand)
        if self._known_for != wanted_for:
            few = nodes.chosen is not None and 2 * len(nodes) < cluster.columns.rows
            found = self._find(nodes if few else Nodes(cluster), demand)
            if few:
                return found
            self._known, self._known_for = found, wanted_for
        return nodes.pick(self._known)

    def _find(self, nodes: Nodes, demand: Demand) -> Floats:
        mu, sigma = self._utilization.of(nodes, demand)
        if self.args.print_table:
            self._log_tables(nodes, mu, sigma)
        return overload_risks(mu, sigma, self._threshold)

    def _log_risks(self, pod: str, nodes: Nodes, demand: Demand) -> None:
        """What a decision rests on, a line for each node."""
        mu, sigma = self._utilization.of(nodes, demand)
        risks = overload_risks(mu, sigma, self._threshold)
        for position, row in enumerate(nodes.rows.tolist()):
            found = ", ".join(
                f"{resource} mu={mu[number, position]:.4f} sigma={sigma[number, position]:.4f} "
                f"risk={risks[number, position]:.4f}"
                for number, resource in enumerate(RESOURCES)
            )
            _log.debug("%s: pod %s on node %s: %s", NAME, pod, nodes.cluster.names[row], found)

    def _log_tables(self, nodes: Nodes, mu: Floats, sigma: Floats) -> None:
        for number, resource in enumerate(RESOURCES):
            for position, row in enumerate(nodes.rows.tolist()):
                found = table(float(mu[number, position]), float(sigma[number, position]))
                if found:
                    _log.info("%s of node %s:", resource, nodes.cluster.names[row])
                    for line in found.splitlines():
                        _log.info("%s", line)


LINES = 21


def table(mu: float, sigma: float) -> str:
    """The distribution that a risk is read from, for the log: 21 lines from nothing in use to all in use.

    For each utilisation x: the density, the probability that usage is at most x, and how much further it goes on
    average where it exceeds x (the mean residual life). Empty where no Beta distribution has these moments.

    >>> print(table(0.5, 0.28867513459481287).splitlines()[11])
    0.50   1.0000   0.5000   0.2500
    """
    spread = sigma * sigma
    if not (0 < mu < 1 and 0 < spread < mu * (1 - mu)):
        return ""
    k = mu * (1 - mu) / spread - 1
    a, b = mu * k, (1 - mu) * k
    lines = ["   x  density      cdf      mrl"]
    for number in range(LINES):
        x = number / (LINES - 1)
        below = probability(x, a, b)
        above = 1 - below
        # The mean of what lies above x is that of a Beta distribution with one more in its first parameter.
        rest = (mu * (1 - probability(x, a + 1, b)) - x * above) / above if above > 0 else 0.0
        lines.append(f"{x:.2f} {_density(x, a, b):8.4f} {below:8.4f} {max(rest, 0.0):8.4f}")
    return "\n".join(lines)


def _density(x: float, a: float, b: float) -> float:
    if not 0 < x < 1:
        end = a if x <= 0 else b
        return 0.0 if end > 1 else math.inf if end < 1 else b if x <= 0 else a
    log_beta = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    return math.exp(min((a - 1) * math.log(x) + (b - 1) * math.log1p(-x) - log_beta, 700.0))
