"""Computes a pod's quality-of-service class: Guaranteed, Burstable or BestEffort.

Only positive amounts of cpu and memory count. Guaranteed: every container limits both, and over all containers the
requests equal the limits. BestEffort: none has any. Where the pod itself has resources, they alone decide.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from kubecel.quantity import QuantityError, parse
from podium.kube.pod import Pod, ResourceRequirements

GUARANTEED: Final = "Guaranteed"
BURSTABLE: Final = "Burstable"
BEST_EFFORT: Final = "BestEffort"

_COUNTED: Final = ("cpu", "memory")
Written = Mapping[str, Any] | None
RequestsAndLimits = tuple[Written, Written]
"""The requests and the limits of a container or a pod, as they are written."""


def qos_class_of(pod: Pod) -> str:
    """The class that the pod's status names, or else the one that follows from its resources.

    >>> qos_class_of(Pod())
    'BestEffort'
    """
    if pod.status.qos_class:
        return pod.status.qos_class
    spec = pod.spec
    containers = [_parts(each.resources) for each in (*spec.containers, *spec.init_containers)]
    return _class(None if spec.resources is None else _parts(spec.resources), containers)


def qos_class(spec: dict[str, Any]) -> str:
    """The class that follows from a pod's spec as the API writes it."""
    own = spec.get("resources")
    written = [
        container.get("resources") or {}
        for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
    ]
    containers = [(each.get("requests"), each.get("limits")) for each in written]
    return _class(None if own is None else (own.get("requests"), own.get("limits")), containers)


def _parts(resources: ResourceRequirements) -> RequestsAndLimits:
    return resources.requests, resources.limits


def _class(own: RequestsAndLimits | None, containers: Sequence[RequestsAndLimits]) -> str:
    requested, limited = [0, 0], [0, 0]
    every_part_limited = True
    for requests, limits in containers if own is None else (own,):
        if requests:
            _add(requested, requests)
        if not limits:
            every_part_limited = every_part_limited and own is not None
        elif not _add(limited, limits):
            every_part_limited = False
    if not any(requested) and not any(limited):
        return BEST_EFFORT
    return GUARANTEED if every_part_limited and requested == limited else BURSTABLE


def _add(total: list[int], amounts: Mapping[str, Any]) -> bool:
    """Add what is written of cpu and memory; whether there is something of both."""
    both = True
    for number, name in enumerate(_COUNTED):
        amount = _nanos(amounts[name]) if name in amounts else 0
        if amount > 0:
            total[number] += amount
        else:
            both = False
    return both


def _nanos(quantity: Any) -> int:
    try:
        return parse(quantity)
    except QuantityError:
        return 0
