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
from typing import Any, TypeVar

from podium.kube import parse_time

P = TypeVar("P", bound=Any)
"""A pod, whole or the view of it that a controller has."""

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


def in_deletion_order(pods: Iterable[P], related: Iterable[P], now: float) -> list[P]:
    """The pods, the first to go first. `related` are those that count as doubled up: of the same owner's owner."""
    on_node = Counter(pod.spec.node_name for pod in related if _active(pod))

    def compare(a: Any, b: Any) -> int:
        return _compare(a, b, on_node, now)

    return sorted(pods, key=cmp_to_key(compare))


def _compare(a: Any, b: Any, on_node: Counter[str], now: float) -> int:
    differences = (
        bool(a.spec.node_name) - bool(b.spec.node_name),
        _PHASES.get(a.status.phase, 0) - _PHASES.get(b.status.phase, 0),
        is_ready(a) - is_ready(b),
        _cost(a) - _cost(b),
        on_node[b.spec.node_name] - on_node[a.spec.node_name],
    )
    for difference in differences:
        if difference:
            return difference
    if is_ready(a) and is_ready(b) and ready_since(a) != ready_since(b):
        return _younger_first(a, b, ready_since(a), ready_since(b), now)
    if restarts := _restarts(b) - _restarts(a):
        return restarts
    created_a, created_b = _seconds(a.metadata.creation_timestamp), _seconds(b.metadata.creation_timestamp)
    if created_a != created_b:
        return _younger_first(a, b, created_a, created_b, now)
    return 0


def _younger_first(a: Any, b: Any, since_a: float | None, since_b: float | None, now: float) -> int:
    if since_a is None or since_b is None:
        return -1 if since_a is None else 1
    rank = _magnitude(now - since_a) - _magnitude(now - since_b)
    return rank or (-1 if a.metadata.uid < b.metadata.uid else 1)


def _magnitude(age: float) -> int:
    """The power of two of an age in nanoseconds; −1 for what has no age."""
    return int(math.log2(age * 1e9)) if age > 0 else -1


def _cost(pod: Any) -> int:
    text = pod.metadata.annotations.get(DELETION_COST, "0")
    try:
        cost = int(text)
    except ValueError:
        return 0
    return cost if -(2**31) <= cost < 2**31 else 0


def _restarts(pod: Any) -> int:
    return max((status.restart_count for status in pod.status.container_statuses), default=0)


def is_ready(pod: Any) -> bool:
    """Whether the pod's condition Ready holds."""
    return any(each.type == "Ready" and each.status == "True" for each in pod.status.conditions)


def ready_since(pod: Any) -> float | None:
    """When the pod became ready; None where it is not, or does not say."""
    condition = next((each for each in pod.status.conditions if each.type == "Ready"), None)
    if condition is None or condition.status != "True":
        return None
    return _seconds(condition.last_transition_time)


def _active(pod: Any) -> bool:
    return pod.status.phase not in ("Succeeded", "Failed") and pod.metadata.deletion_timestamp is None


def _seconds(text: str | None) -> float | None:
    """A time of the API in seconds; None where there is none, or it cannot be read."""
    try:
        return None if text is None else parse_time(text)
    except ValueError:
        return None
