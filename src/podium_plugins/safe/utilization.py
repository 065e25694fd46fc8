"""Estimates how much of a node would be in use with the pod on it: mean and deviation, from annotations.

    free  = mean, or (1 − w)·mean + w·forecast where there is a forecast
    used  = max(allocatable − free, 0)
    mu    = (used + demand)/allocatable, within 0–1
    sigma = deviation/allocatable, within 0–1

Annotations tell what is free: `mean-free-cpu`, `std-free-cpu` and `forcasted-free-cpu` (spelt so) in thousandths, and
the same for memory, in bytes. Without a mean, with a value that is not finite, or on a node that offers nothing of a
resource, nothing is known of it: mu is NaN. A deviation that is missing, unreadable or negative is none; a forecast
that is missing or unreadable changes nothing. `usage-measured-at` says when all that was measured; where there is a
limit to that age, what is older is not known either.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from podium import Clock, RowNumbers, read_decimal
from podium.cluster import Cluster, Nodes
from podium.kube import Pod, parse_time, pod_requests

RESOURCES = ("cpu", "memory")
UNKNOWN = (math.nan, math.nan)
MEASURED_AT = "usage-measured-at"

Floats = NDArray[np.float64]
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
