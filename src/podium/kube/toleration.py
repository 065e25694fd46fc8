"""Decides which taints a pod tolerates on a node, and a request on a device.

A toleration speaks of a taint when its effect and its key are equal to the taint's or left out. Then the operator
decides: Exists always tolerates, Equal (also when left out) needs the same value, and Lt and Gt compare the taint's
value with the toleration's as 64-bit integers, where the cluster has switched those operators on.
"""

from collections.abc import Collection, Iterable
from typing import Final

from kubecel.names import parse_canonical_int64
from podium.kube.devices import DeviceTaint, DeviceToleration
from podium.kube.node import Taint
from podium.kube.pod import Toleration

NO_SCHEDULE: Final = "NoSchedule"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"
NO_EXECUTE: Final = "NoExecute"
REPELLING: Final = (NO_SCHEDULE, NO_EXECUTE)
"""The effects that keep a pod off a node."""


def tolerates(
    toleration: Toleration | DeviceToleration, taint: Taint | DeviceTaint, *, comparisons: bool = False
) -> bool:
    """Whether the toleration covers the taint; `comparisons` switches Lt and Gt on."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == taint.value
        case "Exists":
            return True
        case "Lt" | "Gt" if comparisons:
            bound, value = parse_canonical_int64(toleration.value), parse_canonical_int64(taint.value)
            if bound is None or value is None:
                return False
            return value < bound if toleration.operator == "Lt" else value > bound
    return False


def tolerated(taint: Taint, tolerations: Iterable[Toleration], *, comparisons: bool = False) -> bool:
    """Whether any of the tolerations covers the taint."""
    return any(tolerates(toleration, taint, comparisons=comparisons) for toleration in tolerations)


def untolerated(
    taints: Iterable[Taint],
    tolerations: Collection[Toleration],
    effects: Collection[str] = REPELLING,
    *,
    comparisons: bool = False,
) -> Taint | None:
    """The first taint with one of the effects that no toleration covers."""
    for taint in taints:
        if taint.effect in effects and not tolerated(taint, tolerations, comparisons=comparisons):
            return taint
    return None
