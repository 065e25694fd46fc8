"""How much of a node would be in use with the pod on it: mean and deviation, from the node's annotations.

    free  = mean, or (1 − w)·mean + w·forecast where there is a forecast
    used  = max(allocatable − free, 0)
    mu    = (used + demand)/allocatable, within 0–1
    sigma = deviation/allocatable, within 0–1

Annotations tell what is free: `mean-free-cpu`, `std-free-cpu` and `forcasted-free-cpu` (spelt so) in thousandths, and
the same for memory, in bytes. Without a mean, with a value that is not finite, or on a node that offers nothing of a
resource, nothing is known of it: mu is NaN. A deviation that is missing, unreadable or negative is none; a forecast
that is missing or unreadable changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster, Nodes
from podium.framework.annotated import decimal
from podium.framework.row_numbers import RowNumbers
from podium.kube import Pod
from podium.kube.requests import pod_requests

RESOURCES = ("cpu", "memory")
UNKNOWN = (math.nan, math.nan)

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
    free = decimal(annotations.get(f"mean-free-{resource}"))
    if free is None:
        return UNKNOWN
    deviation = decimal(annotations.get(f"std-free-{resource}")) or 0.0
    forecast = decimal(annotations.get(f"forcasted-free-{resource}"))
    if forecast is not None:
        free = (1 - weight) * free + weight * forecast
    return (free, max(deviation, 0.0)) if math.isfinite(free) and math.isfinite(deviation) else UNKNOWN


class Utilization:
    """mu and sigma of nodes; annotations are read once per version of a node."""

    def __init__(self, forecast_weight: float) -> None:
        self._weight = forecast_weight
        self._annotated = RowNumbers(2 * len(RESOURCES), self._of_row, pods=False, dtype=np.float64)

    def of(self, nodes: Nodes, demand: Demand) -> tuple[Floats, Floats]:
        """mu and sigma: float64[resource, node] each, NaN where nothing is known."""
        annotated = nodes.pick(self._annotated.over_rows(nodes.cluster))
        free, deviation = annotated[::2], annotated[1::2]
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
            return UNKNOWN * len(RESOURCES)
        return [
            number for resource in RESOURCES for number in free_and_deviation(node.annotations, resource, self._weight)
        ]


def lowest(points: Floats) -> NDArray[np.int64]:
    """int64[node]: the fewest points a node has for any resource of which something is known; 0 where for none."""
    fewest = np.fmin(points[0], points[1])
    return np.where(np.isnan(fewest), 0.0, fewest).astype(np.int64)
