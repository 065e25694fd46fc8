"""Computes a pod's quality-of-service class: Guaranteed, Burstable or BestEffort.

Only positive amounts of cpu and memory count. Guaranteed: every container limits both, and over all containers the
requests equal the limits. BestEffort: none has any. Where the pod itself has resources, they alone decide.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from podium.kube.pod import Pod, ResourceRequirements
from podium.kube.quantity import QuantityError, parse

GUARANTEED: Final = "Guaranteed"
BURSTABLE: Final = "Burstable"
BEST_EFFORT: Final = "BestEffort"

_COUNTED: Final = ("cpu", "memory")
Amounts = dict[str, int]
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
    parts = containers if own is None else [own]
    requests = _sum(_amounts(each) for each, _limits in parts)
    limits = _sum(_amounts(each) for _requests, each in parts)
    if not requests and not limits:
        return BEST_EFFORT
    every_part_limited = all(len(_amounts(each)) == len(_COUNTED) for _requests, each in parts)
    if own is not None and not own[1]:
        every_part_limited = True
    return GUARANTEED if every_part_limited and requests == limits else BURSTABLE


def _amounts(resources: Written) -> Amounts:
    if not resources:
        return {}
    found: Amounts = {}
    for name in _COUNTED:
        if name in resources and (amount := _nanos(resources[name])) > 0:
            found[name] = amount
    return found


def _nanos(quantity: Any) -> int:
    try:
        return parse(quantity)
    except QuantityError:
        return 0


def _sum(parts: Iterable[Amounts]) -> Amounts:
    total: Amounts = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, 0) + amount
    return total
