"""Computes a pod's quality-of-service class: Guaranteed, Burstable or BestEffort.

Only positive amounts of cpu and memory count. Guaranteed: every container limits both, and over all containers the
requests equal the limits. BestEffort: none has any. Where the pod itself has resources, they alone decide.
"""

from collections.abc import Iterable
from typing import Any, Final

from podium.kube.quantity import QuantityError, parse

_COUNTED: Final = ("cpu", "memory")
Amounts = dict[str, int]


def qos_class(spec: dict[str, Any]) -> str:
    own = spec.get("resources")
    if own is None:
        parts: list[dict[str, Any]] = [
            container.get("resources") or {}
            for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ()))
        ]
        every_part_limited = all(len(_amounts(part.get("limits"))) == len(_COUNTED) for part in parts)
    else:
        parts = [own]
        every_part_limited = not own.get("limits") or len(_amounts(own.get("limits"))) == len(_COUNTED)
    requests = _sum(_amounts(part.get("requests")) for part in parts)
    limits = _sum(_amounts(part.get("limits")) for part in parts)
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if every_part_limited and requests == limits else "Burstable"


def _amounts(resources: dict[str, Any] | None) -> Amounts:
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
