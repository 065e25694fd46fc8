"""Decides whether the devices of a claim are ready for a pod to be bound, by what their drivers report."""

from __future__ import annotations

from collections.abc import Sequence

from kubecel.strconv import quoted
from podium.framework import Status
from podium.framework.waiting import DeviceWait
from podium.kube import ResourceClaim
from podium.kube.devices import AllocatedDeviceStatus, DeviceRequestAllocation
from podium.kube.meta import parse_time

TIMED_OUT = "device binding timeout"
FAILED = "device binding failed"


class DevicesFailedError(Exception):
    """Devices that will not become ready."""


def needs_conditions(claim: ResourceClaim) -> bool:
    allocation = claim.status.allocation
    return allocation is not None and any(each.binding_conditions for each in allocation.devices.results)


def is_ready(claim: ResourceClaim) -> bool:
    """Whether all conditions hold; DevicesFailedError where one says that they never will."""
    allocation = claim.status.allocation
    if allocation is None:
        return False
    for result in allocation.devices.results:
        if not result.binding_conditions:
            continue
        reported = _reported(claim, result)
        if reported is None:
            return False
        holding = {each.type: each for each in reported.conditions if each.status == "True"}
        for name in result.binding_failure_conditions:
            if name in holding:
                failed = holding[name]
                reason = f"reason={failed.reason}, message={quoted(failed.message)}"
                raise DevicesFailedError(f"{FAILED}: claim={claim.name}, {reason}")
        if any(name not in holding for name in result.binding_conditions):
            return False
    return True


def is_overdue(claim: ResourceClaim, seconds: float, now: float) -> bool:
    """Whether devices had long enough to become ready."""
    allocation = claim.status.allocation
    if allocation is None or allocation.allocation_timestamp is None or not needs_conditions(claim):
        return False
    return parse_time(allocation.allocation_timestamp) + seconds < now


def device_wait(profile: str, claims: Sequence[ResourceClaim], outcome: Status | None, seconds: float) -> DeviceWait:
    """What is to be said of a wait that is over."""
    found = [
        result for claim in claims if claim.status.allocation for result in claim.status.allocation.devices.results
    ]
    drivers = [result.driver for result in found]
    awaited = [result.driver for result in found if result.binding_conditions]
    if outcome is None:
        status = "success"
    elif outcome.message.startswith(TIMED_OUT):
        status = "timeout"
    else:
        status = "failed" if outcome.message.startswith(FAILED) else "error"
    return DeviceWait(profile, drivers, awaited, status, seconds)


def _reported(claim: ResourceClaim, result: DeviceRequestAllocation) -> AllocatedDeviceStatus | None:
    for each in claim.status.devices:
        if (each.driver, each.pool, each.device) == (result.driver, result.pool, result.device):
            return each
    return None
