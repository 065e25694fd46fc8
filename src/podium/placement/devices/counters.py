"""Keeps track of shared counters, from which the partitions of a device take their share.

What is available of a pool is its counter sets less what every allocated device consumes, on whichever node. A device
is refused while any counter of the pool is short, also one that it does not use.
"""

from __future__ import annotations

from collections import Counter

from podium.placement.devices.inventory import CounterName, DevicePool, OfferedDevice
from podium.placement.devices.tally import DeviceTally


class CounterBalance:
    """What is left of the counters of pools while devices are chosen."""

    def __init__(self, tally: DeviceTally) -> None:
        self._tally = tally
        self._left: dict[DevicePool, dict[CounterName, int]] = {}
        self._taken: Counter[DevicePool] = Counter()

    def take(self, pool: DevicePool, offered: OfferedDevice) -> bool:
        """Take a device's share; False where the pool is short then, and nothing was taken."""
        left = self._of(pool)
        self._taken[pool] += 1
        for counter, amount in offered.counter_shares:
            left[counter] = left.get(counter, 0) - amount
        if all(amount >= 0 for amount in left.values()):
            return True
        self.give_back(pool, offered)
        return False

    def give_back(self, pool: DevicePool, offered: OfferedDevice) -> None:
        left = self._of(pool)
        self._taken[pool] -= 1
        for counter, amount in offered.counter_shares:
            left[counter] += amount

    def is_taken_from(self, pool: DevicePool) -> bool:
        """Whether anything was taken of a pool, beyond what is in use."""
        return self._taken[pool] > 0

    def _of(self, pool: DevicePool) -> dict[CounterName, int]:
        left = self._left.get(pool)
        if left is None:
            left = {
                (name, each): amount for name, counters in pool.counters.items() for each, amount in counters.items()
            }
            for offered in (*pool.devices, *pool.elsewhere):
                if offered.device.consumes_counters and self._tally.is_allocated(offered.id):
                    for counter, amount in offered.counter_shares:
                        left[counter] -= amount
            self._left[pool] = left
        return left
