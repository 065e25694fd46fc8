"""Computes what a pod requests of cpu and memory, and how far its limits let it go: the terms of over-commitment.

Sums are those of Kubernetes: app containers and sidecars together, or an init container where it needs more, plus
overhead; a pod that is being resized counts with what it may have. For pods without sidecars and without requests of
their own these are the sums of the scheduler-plugins project, whose own formula leaves sidecars out although they run
as long as the pod does. A limit below the request, or none, counts as the request.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kubecel.quantity import milli_of, units_of
from podium.cluster import Cluster, PlacedPod, PodFacts
from podium.kube import Pod
from podium.kube.requests import exact_limits, requested

_NOTE = "commitment"
NO_OVERCOMMITMENT = (0, 0)


class Commitment(NamedTuple):
    """CPU in thousandths, memory in bytes."""

    cpu: int
    memory: int
    cpu_limit: int
    memory_limit: int


def commitment_of(pod: Pod, facts: PodFacts) -> Commitment:
    """The commitment, worked out once per signature."""
    known: Commitment | None = facts.notes.get(_NOTE)
    if known is None:
        known = facts.notes[_NOTE] = _commitment(pod)
    return known


def _commitment(pod: Pod) -> Commitment:
    requests, limits = requested(pod), exact_limits(pod)
    cpu, memory = max(0, requests.get("cpu", 0)), max(0, requests.get("memory", 0))
    cpu_limit, memory_limit = milli_of(limits.get("cpu", 0)), units_of(limits.get("memory", 0))
    return Commitment(cpu, memory, max(cpu, cpu_limit), max(memory, memory_limit))


class Overcommitted:
    """By how much the limits of each row's pods exceed what they ask for, together; moved by pods that come and go.

    Most pods have no such limits, and most rows no such pods.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._rows: dict[int, tuple[int, int]] = {}
        self._column = cluster.columns.new(np.int64, (2,))
        cluster.follow_pods(self)

    def on(self, row: int) -> tuple[int, int]:
        """CPU in thousandths and memory in bytes."""
        return self._rows.get(row, NO_OVERCOMMITMENT)

    def over_rows(self) -> NDArray[np.int64]:
        """int64[2, rows]; to be read only."""
        return self._column.view

    def pod_added(self, placed: PlacedPod) -> None:
        self._move(placed, 1)

    def pod_removed(self, placed: PlacedPod) -> None:
        self._move(placed, -1)

    def _move(self, placed: PlacedPod, sign: int) -> None:
        cpu, memory, cpu_limit, memory_limit = commitment_of(placed.pod, placed.facts)
        if cpu_limit == cpu and memory_limit == memory:
            return
        row, there = placed.row, self.on(placed.row)
        now = there[0] + sign * (cpu_limit - cpu), there[1] + sign * (memory_limit - memory)
        self._column.view[:, row] = now
        if now == NO_OVERCOMMITMENT:
            del self._rows[row]
        else:
            self._rows[row] = now
