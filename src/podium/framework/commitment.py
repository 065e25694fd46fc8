"""What a pod asks for of cpu and memory, and how far its limits let it go: what over-commitment is computed from.

Sums are those of Kubernetes: app containers and sidecars together, or an init container where it needs more, plus
overhead. For pods without sidecars and without requests of their own these are the sums of the scheduler-plugins
project, whose own formula leaves sidecars out although they run as long as the pod does. A limit below the request, or
none, counts as the request.
"""

from __future__ import annotations

from typing import NamedTuple

from podium.cluster import PodFacts
from podium.kube import Pod
from podium.kube.quantity import milli_of, units_of
from podium.kube.requests import exact_limits, exact_requests

_NOTE = "commitment"


class Commitment(NamedTuple):
    """CPU in thousandths, memory in bytes."""

    cpu: int
    memory: int
    cpu_limit: int
    memory_limit: int


def commitment_of(pod: Pod, facts: PodFacts) -> Commitment:
    """The commitment, worked out once for all pods of a family."""
    known: Commitment | None = facts.notes.get(_NOTE)
    if known is None:
        known = facts.notes[_NOTE] = _commitment(pod)
    return known


def _commitment(pod: Pod) -> Commitment:
    requests, limits = exact_requests(pod), exact_limits(pod)
    cpu, memory = max(0, milli_of(requests.get("cpu", 0))), max(0, units_of(requests.get("memory", 0)))
    cpu_limit, memory_limit = milli_of(limits.get("cpu", 0)), units_of(limits.get("memory", 0))
    return Commitment(cpu, memory, max(cpu, cpu_limit), max(memory, memory_limit))
