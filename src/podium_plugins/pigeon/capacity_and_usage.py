"""Reads what nodes have and use, and what a pod requests, in the units that pods are compared in.

    number  resource            unit        used, by annotation              asked for
    0       cpu                 thousandth  requested-cpu                    at least 10
    1       memory              MiB         requested-memory (bytes)         at least 16
    2       pods                            requested-pods                   1
    3       GPUs                            requested-gpu
    4       ephemeral storage   GiB         requested-ephemeral-storage (bytes)

Bytes are rounded down. A pod asks for the sum over its containers; init containers do not count, for what is packed is
what stays. An annotation that is missing, unreadable or negative tells of no usage. The pods on a node tell too, and
sooner: a pod that has just been placed is in no annotation yet. So the higher of both counts, unless set otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from podium import RowNumbers, read_decimal
from podium.cluster import Cluster
from podium.kube import Pod, milli_of, parse_quantity, units_of

NAMES = ("cpu", "memory", "pods", "gpu", "ephemeral-storage")
UNITS = (1, 1 << 20, 1, 1, 1 << 30)
LEAST_REQUEST = (10, 16, 1, 0, 0)
CPU, PODS, GPU = 0, 2, 3
LARGEST = 2.0**62
"""More than any node has, and small enough to be squared."""

Floats = NDArray[np.float64]


class CapacityAndUsage:
    """Capacity and usage of all rows: float64[resource, row], whole numbers."""

    def __init__(self, resources: int, gpu_resource: str, usage: str) -> None:
        self._count = resources
        self._gpu = gpu_resource
        self._usage = usage
        self._units = np.array(UNITS[: self._count], dtype=np.float64)[:, None]
        self._annotated = RowNumbers(self._count, self._annotated_on, dtype=np.float64)

    def capacity(self, cluster: Cluster) -> Floats:
        resources = cluster.resources
        offered = [
            resources.allowed_pods if number == PODS else resources.allocatable_of(self._name(number))
            for number in range(self._count)
        ]
        return self._in_units(np.array(offered, dtype=np.float64))

    def usage(self, cluster: Cluster) -> Floats:
        annotated = self._annotated.over_rows(cluster)
        if self._usage == "annotations":
            return self._in_units(annotated)
        resources = cluster.resources
        requested = [
            resources.pod_count if number == PODS else resources.requested_of(self._name(number))
            for number in range(self._count)
        ]
        used = np.array(requested, dtype=np.float64)
        return self._in_units(np.maximum(used, annotated) if self._usage == "highest" else used)

    def demand(self, pod: Pod) -> Floats:
        """float64[resource]: what the pod asks for."""
        requested = [
            1 if number == PODS else self._requested(pod, number) // UNITS[number] for number in range(self._count)
        ]
        return np.array(
            [each or least for each, least in zip(requested, LEAST_REQUEST, strict=False)], dtype=np.float64
        )

    def _requested(self, pod: Pod, number: int) -> int:
        name = self._name(number)
        amounts = (container.resources.requests.get(name) for container in pod.spec.containers)
        exact = sum(parse_quantity(amount) for amount in amounts if amount is not None)
        return max(0, milli_of(exact) if number == CPU else units_of(exact))

    def _annotated_on(self, cluster: Cluster, row: int) -> Sequence[float]:
        node = cluster.nodes[row]
        if node is None:
            return [0.0] * self._count
        return [_amount(node.annotations.get(f"requested-{name}")) for name in NAMES[: self._count]]

    def _name(self, number: int) -> str:
        return self._gpu if number == GPU else NAMES[number]

    def _in_units(self, amounts: Floats) -> Floats:
        whole: Floats = np.floor(amounts / self._units)
        return whole


def _amount(text: str | None) -> float:
    number = read_decimal(text)
    return min(number, LARGEST) if number is not None and 0 < number < np.inf else 0.0
