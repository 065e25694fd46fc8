"""Counts which devices are in use: dedicated to one claim, or shared with the capacity that is consumed of them.

Results with admin access do not count. A result with a share identifier adds to what is consumed of its device; any
other marks the device as dedicated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from kubecel.quantity import parse
from podium.kube.devices import Allocation

Consumed = dict[str, int]
"""Capacity by name, in nano units."""


class DeviceID(NamedTuple):
    """A device among all of a cluster."""

    driver: str
    pool: str
    device: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.pool}/{self.device}"


class DeviceTally:
    """The devices in use; `changed` is called with the driver and pool of each that comes into use or no longer is."""

    def __init__(self, changed: Callable[[tuple[str, str]], None] = lambda _pool: None) -> None:
        self._changed = changed
        self.dedicated: Counter[DeviceID] = Counter()
        self.shares: Counter[DeviceID] = Counter()
        self.consumed: dict[DeviceID, Consumed] = {}

    def add(self, allocation: Allocation) -> None:
        for result in allocation.devices.results:
            device = DeviceID(result.driver, result.pool, result.device)
            if result.admin_access:
                continue
            self._changed((result.driver, result.pool))
            if result.share_id is None:
                self.dedicated[device] += 1
                continue
            self.shares[device] += 1
            if result.consumed_capacity:
                consume(self.consumed, device, {name: parse(each) for name, each in result.consumed_capacity.items()})

    def remove(self, allocation: Allocation) -> None:
        for result in allocation.devices.results:
            device = DeviceID(result.driver, result.pool, result.device)
            if result.admin_access:
                continue
            self._changed((result.driver, result.pool))
            if result.share_id is None:
                _one_less(self.dedicated, device)
                continue
            _one_less(self.shares, device)
            if result.consumed_capacity:
                release(self.consumed, device, {name: parse(each) for name, each in result.consumed_capacity.items()})

    def is_allocated(self, device: DeviceID) -> bool:
        """Whether anything of a device is in use."""
        return device in self.dedicated or device in self.shares or device in self.consumed


def _one_less(counts: Counter[DeviceID], device: DeviceID) -> None:
    counts[device] -= 1
    if counts[device] <= 0:
        del counts[device]


def consume(consumed: dict[DeviceID, Consumed], device: DeviceID, amounts: Consumed) -> None:
    known = consumed.setdefault(device, {})
    for name, amount in amounts.items():
        known[name] = known.get(name, 0) + amount


def release(consumed: dict[DeviceID, Consumed], device: DeviceID, amounts: Consumed) -> None:
    """Give back; a device of which nothing is consumed any more is forgotten."""
    known = consumed.get(device)
    if known is None:
        return
    for name, amount in amounts.items():
        if name in known:
            known[name] -= amount
    if not any(known.values()):
        del consumed[device]
