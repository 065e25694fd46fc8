"""Chooses devices of one node for a pod.

Whole GPUs are the lowest-numbered free ones. A share goes to the device that has the least left and still enough, the
lowest-numbered of equals.
"""

from __future__ import annotations

from collections.abc import Sequence

from podium_plugins.gpu.request import WHOLE, GpuRequest


def sufficient(free: Sequence[int], request: GpuRequest) -> list[int]:
    """The devices that have enough left for one part of the request.

    >>> sufficient([1000, 400, 600], GpuRequest(1, 500))
    [0, 2]
    """
    milli = request.milli
    return [device for device, left in enumerate(free) if left >= milli]


def fits(free: Sequence[int], request: GpuRequest) -> bool:
    milli, missing = request.milli, request.gpus
    for left in free:
        if left >= milli:
            missing -= 1
    return missing <= 0


def best_devices(free: Sequence[int], request: GpuRequest) -> tuple[int, ...] | None:
    """The devices to take; None where the request does not fit.

    >>> best_devices([1000, 400, 600], GpuRequest(1, 500)), best_devices([1000, 400, 1000], GpuRequest(2, 1000))
    ((2,), (0, 2))
    """
    devices = sufficient(free, request)
    if len(devices) < request.gpus:
        return None
    if request.milli < WHOLE:
        return (min(devices, key=free.__getitem__),)
    return tuple(devices[: request.gpus])
