"""Orders the pods of a ReplicaSet for deletion when there are too many: those whose loss costs least come first.

In this order: not placed; pending; not ready; cheap by `controller.kubernetes.io/pod-deletion-cost`; sharing its node
with more pods of the same owner; ready for a shorter time; with more restarts; younger. Ages are compared by powers of
two, so that among pods of about the same age chance (the uid) decides.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from functools import cmp_to_key

from podium_cluster.controllers.pods import PodView, seconds

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


def in_deletion_order(pods: Iterable[PodView], related: Iterable[PodView], now: float) -> list[PodView]:
    """The pods, the first to go first. `related` are those that count as doubled up: of the same owner's owner."""
    on_node = Counter(pod.spec.node_name for pod in related if pod.active)

    def compare(a: PodView, b: PodView) -> int:
        return _compare(a, b, on_node, now)

    return sorted(pods, key=cmp_to_key(compare))


def _compare(a: PodView, b: PodView, on_node: Counter[str], now: float) -> int:
    differences = (
        bool(a.spec.node_name) - bool(b.spec.node_name),
        _PHASES.get(a.phase, 0) - _PHASES.get(b.phase, 0),
        a.ready - b.ready,
        _cost(a) - _cost(b),
        on_node[b.spec.node_name] - on_node[a.spec.node_name],
    )
    for difference in differences:
        if difference:
            return difference
    if a.ready and b.ready and a.ready_since != b.ready_since:
        return _younger_first(a, b, a.ready_since, b.ready_since, now)
    if restarts := _restarts(b) - _restarts(a):
        return restarts
    created_a, created_b = seconds(a.metadata.creation_timestamp), seconds(b.metadata.creation_timestamp)
    if created_a != created_b:
        return _younger_first(a, b, created_a, created_b, now)
    return 0


def _younger_first(a: PodView, b: PodView, since_a: float | None, since_b: float | None, now: float) -> int:
    if since_a is None or since_b is None:
        return -1 if since_a is None else 1
    rank = _magnitude(now - since_a) - _magnitude(now - since_b)
    return rank or (-1 if a.metadata.uid < b.metadata.uid else 1)


def _magnitude(age: float) -> int:
    """The power of two of an age in nanoseconds; −1 for what has no age."""
    return int(math.log2(age * 1e9)) if age > 0 else -1


def _cost(pod: PodView) -> int:
    text = pod.metadata.annotations.get(DELETION_COST, "0")
    try:
        cost = int(text)
    except ValueError:
        return 0
    return cost if -(2**31) <= cost < 2**31 else 0


def _restarts(pod: PodView) -> int:
    return max((status.restart_count for status in pod.status.container_statuses), default=0)
