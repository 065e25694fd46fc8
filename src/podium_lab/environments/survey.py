"""Finds what rewards need to know of a scenario: its mean time between pods, and its typical pods.

Both are taken from the first pods of the episode with seed 0, so that they are the same for every episode.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import NamedTuple

from kubecel.quantity import units
from podium.kube import Node, Pod
from podium.kube.requests import pod_requests
from podium_lab.environments.limits import NVIDIA
from podium_lab.simulator.nodes import gpu_capacity, scenario_nodes
from podium_lab.simulator.reading import LoadedScenario
from podium_lab.simulator.workload import arrivals

MOST_TYPICAL = 8
MOST_PODS = 2_000


class Typical(NamedTuple):
    """The pods that fragmentation is measured by: thousandths of a core, GPUs, and the share of such pods."""

    cpu: tuple[int, ...]
    gpus: tuple[int, ...]
    share: tuple[float, ...]


class ScenarioSurvey(NamedTuple):
    """What is common to all episodes of a scenario."""

    unit: float
    """Seconds: the mean time between pods."""
    devices: int
    """The most GPUs of a node."""
    typical: Typical


def survey(loaded: LoadedScenario) -> ScenarioSurvey:
    """What rewards need to know of a scenario."""
    nodes = scenario_nodes(loaded)
    first = list(islice(arrivals(loaded, 0, gpu_capacity(nodes)), MOST_PODS))
    shapes: Counter[tuple[int, int]] = Counter()
    for arrival in first:
        requests = pod_requests(Pod(spec=arrival.template.spec))
        shapes[requests.get("cpu", 0), requests.get(NVIDIA, 0)] += 1
    most = shapes.most_common(MOST_TYPICAL)
    total = sum(count for _, count in most)
    span = first[-1].at - first[0].at if first else 0.0
    typical = Typical(
        tuple(cpu for (cpu, _), _ in most), tuple(gpus for (_, gpus), _ in most), tuple(n / total for _, n in most)
    )
    return ScenarioSurvey(span / max(len(first) - 1, 1) or 1.0, max(map(gpus_of, nodes)), typical)


def gpus_of(node: Node) -> int:
    return units(node.status.allocatable.get(NVIDIA, 0))
