"""Reads what a pod asks for and what nodes have left of cpu and GPUs, for the scores.

    C, c   thousandths of cpu: left on the node, asked for by the pod
    R, k·d thousandths of GPU: left on the node, asked for by the pod

Scores relate them to a large node of the cluster they were made for: 128 cores and 8 GPUs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from podium import Cycle, DependsOn, Handle, NodePart, Plugin
from podium.cluster import ALLOCATABLE, CPU, REQUESTED, Amounts, Cluster, Nodes
from podium_plugins.gpu.devices import GpuDevices, request_of
from podium_plugins.gpu.request import NO_GPU, GpuRequest

FULL_CPU = 128_000
FULL_GPU = 8_000
MOST_CPU = 10**8
"""More thousandths of cpu than any node has: larger amounts count as this, so that products fit into 64 bits."""


class GpuScorePlugin(Plugin):
    """A plugin that scores by the devices of nodes; of equal nodes the first is taken."""

    depends_on = DependsOn(node=NodePart.PODS, claims=False)
    first_of_equals = True

    def __init__(self, args: Any, handle: Handle) -> None:
        super().__init__(args, handle)
        self._devices = GpuDevices.of(handle.cluster)


class Wanted(NamedTuple):
    cpu: int
    request: GpuRequest


def wanted_by(cycle: Cycle) -> Wanted:
    """What the pod asks for; annotations that cannot be read ask for nothing (GpuShare turns such pods away)."""
    request = request_of(cycle.pod, cycle.facts)
    return Wanted(int(cycle.facts.counted[CPU]), request if isinstance(request, GpuRequest) else NO_GPU)


def cpu_left_on(cluster: Cluster, row: int) -> int:
    numbers = cluster.resources.on(row)
    return numbers[ALLOCATABLE + CPU] - numbers[REQUESTED + CPU]


def cpu_left(nodes: Nodes) -> Amounts:
    resources = nodes.cluster.resources
    left: Amounts = nodes.pick(resources.allocatable[CPU]) - nodes.pick(resources.requested[CPU])
    return left
