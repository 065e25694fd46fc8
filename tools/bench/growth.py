"""Measures how the cost of a decision grows with the cluster: time per pod = a × nodes^exponent.

The same number of pods is decided in clusters of several sizes; the exponent is the slope of a straight line through
the logarithms. 0 means that the size does not matter, 1 that twice the nodes cost twice the time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import msgspec

from tools.bench.processes import measure, request_for
from tools.bench.suite import WORKLOADS
from tools.bench.workload import Workload

CASES = ("SchedulingBasic", "TopologySpreading", "AllDifferent")
NODES = (1000, 5000, 20_000)
PODS = 2000


class GrowthPoint(msgspec.Struct, frozen=True):
    nodes: int
    us_per_pod: float


class Growth(msgspec.Struct, frozen=True):
    workload: str
    points: list[GrowthPoint]
    exponent: float


def measure_growth(
    case: str,
    nodes: Sequence[int] = NODES,
    pods: int = PODS,
    *,
    config: tuple[str, str] | None = None,
    plugins: Sequence[str] = (),
    on_point: Callable[[int], None] = lambda _nodes: None,
) -> Growth:
    """Measure a case's first workload at each number of nodes."""
    points = []
    for size in nodes:
        on_point(size)
        measured = measure(request_for(_sized(case, size, pods), config, plugins))
        points.append(GrowthPoint(size, round(1e6 / measured.pods_per_s, 2)))
    return Growth(case, points, round(exponent([(point.nodes, point.us_per_pod) for point in points]), 3))


def _sized(case: str, nodes: int, pods: int) -> Workload:
    workload = next(each for each in WORKLOADS if each.case == case)
    return workload.at(nodes).with_sizes({"measured": pods})


def exponent(points: Sequence[tuple[float, float]]) -> float:
    """The slope of the least-squares line through the logarithms of (size, cost).

    >>> exponent([(1, 3), (10, 30), (100, 300)])
    1.0
    """
    logs = [(math.log(size), math.log(cost)) for size, cost in points]
    middle = sum(x for x, _ in logs) / len(logs)
    spread = sum((x - middle) ** 2 for x, _ in logs)
    if not spread:
        raise ValueError("an exponent needs at least two sizes of cluster")
    return round(sum((x - middle) * y for x, y in logs) / spread, 12)
