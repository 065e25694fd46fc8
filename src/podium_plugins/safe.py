"""Places by the risk that measured usage, which varies, exceeds what a node has: SafeOverload and SafeBalance.

SafeOverload refuses nodes on which usage may well exceed a threshold, and prefers those where it hardly will:

    filter   a node is refused when for cpu or memory risk > ε
    score    f = risk/ε; points = ⌊10·(1 − √f)⌋, none where f ≥ 1; the fewer of cpu and memory; score = 10·points

The risk is that of `overload_risks`, for the utilisation with the pod on the node. T is the argument
`utilization` (SAFEUTILIZATION, 90 %), ε `percentile` (SAFEPERCENTILE, 30 %), the weight of a forecast `forecastWeight`
(SAFEFORECASTWEIGHT, 20 %). A resource of which nothing is known refuses no node and does not count in the score; a node
of which nothing is known scores 0. What was measured longer ago than `maxAge`, if that is set, is not known. With
ε = 0, a node scores in full where there is no risk at all.

SafeBalance prefers nodes with low and steady usage:

    points = ⌊10·(1 − (mu + √sigma)/2) + ½⌋, the fewer of cpu and memory; score = 10·points

mu and sigma are mean and deviation of the node's utilisation with the pod on it; √sigma is the root
of the deviation, which tells small deviations apart better. A node of which nothing is known scores 0.

How much of a node would be in use with the pod on it, mean and deviation, comes from annotations:

    free  = mean, or (1 − w)·mean + w·forecast where there is a forecast
    used  = max(allocatable − free, 0)
    mu    = (used + demand)/allocatable, within 0–1
    sigma = deviation/allocatable, within 0–1

Annotations tell what is free: `mean-free-cpu`, `std-free-cpu` and `forcasted-free-cpu` (spelt so) in thousandths, and
the same for memory, in bytes. Without a mean, with a value that is not finite, or on a node that offers nothing of a
resource, nothing is known of it: mu is NaN. A deviation that is missing, unreadable or negative is none; a forecast
that is missing or unreadable changes nothing. `usage-measured-at` says when all that was measured; where there is a
limit to that age, what is older is not known either.

Arguments are in percent; environment variables stand in for them.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Hashable, Iterable, Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from podium import (
    Action,
    Clock,
    Cycle,
    DependsOn,
    Duration,
    FieldError,
    FieldPath,
    Handle,
    Interest,
    NodePart,
    Plugin,
    Resource,
    RowNumbers,
    Scores,
    Status,
    Verdict,
    filled,
    read_decimal,
)
from podium.cluster import Cluster, Nodes
from podium.kube import Pod, parse_time, pod_requests
from podium.load import Floats, probabilities, probability

UTILIZATION, PERCENTILE, FORECAST_WEIGHT = 90, 30, 20


class SafeOverloadArgs(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    utilization: int | None = None
    """A node that uses more than this is overloaded."""
    percentile: int | None = None
    """How high the risk of overload may be."""
    forecast_weight: int | None = None
    """How much a forecast counts against the mean."""
    max_age: Duration | None = None
    """Annotations that say that they were measured longer ago are not believed."""
    print_table: bool | None = None
    """Log the distribution behind every risk: for a look at few nodes."""

    def validate(self, path: FieldPath) -> Iterable[FieldError]:
        yield from _within(path.child("utilization"), self.utilization)
        yield from _within(path.child("percentile"), self.percentile)
        yield from _within(path.child("forecastWeight"), self.forecast_weight)
        yield from _positive(path.child("maxAge"), self.max_age)


class SafeBalanceArgs(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    forecast_weight: int | None = None
    max_age: Duration | None = None

    def validate(self, path: FieldPath) -> Iterable[FieldError]:
        yield from _within(path.child("forecastWeight"), self.forecast_weight)
        yield from _positive(path.child("maxAge"), self.max_age)


BALANCE_VARIABLES = {"forecast_weight": "SAFEFORECASTWEIGHT"}
OVERLOAD_VARIABLES = {
    "utilization": "SAFEUTILIZATION",
    "percentile": "SAFEPERCENTILE",
    "print_table": "SAFEPRINTTABLE",
    **BALANCE_VARIABLES,
}


def share(percent: int | None, default: int) -> float:
    return (default if percent is None else percent) / 100


def seconds(length: Duration | None) -> float | None:
    return None if length is None else length.seconds


def _positive(path: FieldPath, length: Duration | None) -> Iterable[FieldError]:
    if length is not None and length <= 0:
        yield FieldError.invalid(path, length, "must be greater than zero")


def _within(path: FieldPath, percent: int | None) -> Iterable[FieldError]:
    if percent is not None and not 0 <= percent <= 100:
        yield FieldError.invalid(path, percent, "must be a percentage from 0 to 100")


RESOURCES = ("cpu", "memory")
UNKNOWN = (math.nan, math.nan)
MEASURED_AT = "usage-measured-at"

Demand = tuple[int, ...]


def demand_of(pod: Pod) -> Demand:
    """What the pod asks for of each of the resources, init containers and overhead included."""
    requests = pod_requests(pod)
    return tuple(requests.get(resource, 0) for resource in RESOURCES)


def free_and_deviation(annotations: Mapping[str, str], resource: str, weight: float) -> tuple[float, float]:
    """What the annotations say of one resource; UNKNOWN where they say nothing that can be used.

    >>> free_and_deviation({"mean-free-cpu": "2500", "forcasted-free-cpu": "2000"}, "cpu", 0.2)
    (2400.0, 0.0)
    """
    free = read_decimal(annotations.get(f"mean-free-{resource}"))
    if free is None:
        return UNKNOWN
    deviation = read_decimal(annotations.get(f"std-free-{resource}")) or 0.0
    forecast = read_decimal(annotations.get(f"forcasted-free-{resource}"))
    if forecast is not None:
        free = (1 - weight) * free + weight * forecast
    return (free, max(deviation, 0.0)) if math.isfinite(free) and math.isfinite(deviation) else UNKNOWN


class Utilization:
    """mu and sigma of nodes; annotations are read once per version of a node.

    `max_age`: seconds after which they are not believed; None: always. `age_mark` moves whenever that happens to some.
    """

    def __init__(self, forecast_weight: float, max_age: float | None, clock: Clock) -> None:
        self._weight = forecast_weight
        self._max_age = max_age
        self._clock = clock
        self._annotated = RowNumbers(2 * len(RESOURCES) + 1, self._of_row, dtype=np.float64)
        self._expired = 0
        self._next = (-1, math.inf)
        """The state of the nodes, and when the next of them will be too old."""

    def age_mark(self, cluster: Cluster) -> Hashable:
        if self._max_age is None:
            return ()
        changes, due = self._next
        now = self._clock.now()
        if changes != cluster.node_changes.version or now > due:
            self._expired += now > due
            ends = self._annotated.over_rows(cluster)[-1] + self._max_age
            self._next = (cluster.node_changes.version, float(ends[ends >= now].min(initial=math.inf)))
        return self._expired

    def of(self, nodes: Nodes, demand: Demand) -> tuple[Floats, Floats]:
        """mu and sigma: float64[resource, node] each, NaN where nothing is known."""
        annotated = nodes.pick(self._annotated.over_rows(nodes.cluster))
        free, deviation = annotated[:-1:2], annotated[1:-1:2]
        if self._max_age is not None:
            free = np.where(annotated[-1] + self._max_age < self._clock.now(), np.nan, free)
        offered = np.array([nodes.allocatable(resource) for resource in RESOURCES], dtype=np.float64)
        capacity = np.where(offered > 0, offered, np.nan)
        with np.errstate(over="ignore"):  # what is beyond all bounds is cut to them
            used = np.maximum(capacity - free, 0.0)
            mu = np.clip((used + np.array(demand, dtype=np.float64)[:, None]) / capacity, 0.0, 1.0)
            sigma = np.clip(deviation / capacity, 0.0, 1.0)
        return mu, sigma

    def _of_row(self, cluster: Cluster, row: int) -> Sequence[float]:
        node = cluster.nodes[row]
        if node is None:
            return (*UNKNOWN * len(RESOURCES), math.nan)
        found = [
            number for resource in RESOURCES for number in free_and_deviation(node.annotations, resource, self._weight)
        ]
        return [*found, _measured_at(node.annotations.get(MEASURED_AT))]


def _measured_at(text: str | None) -> float:
    """NaN where that is not written: then it is not known to be old."""
    try:
        return parse_time(text) if text is not None else math.nan
    except ValueError:
        return math.nan


def lowest(points: Floats) -> NDArray[np.int64]:
    """int64[node]: the fewest points a node has for any resource of which something is known; 0 where for none."""
    fewest = np.fmin(points[0], points[1])
    return np.where(np.isnan(fewest), 0.0, fewest).astype(np.int64)


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


class SafeBalance(Plugin):
    name = "SafeBalance"
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
                _log.debug("%s: pod %s on node %s: %s", self.name, cycle.pod.key, nodes.cluster.names[row], found)
        return POINTS * lowest(np.trunc(POINTS * (1 - strain) + 0.5))
