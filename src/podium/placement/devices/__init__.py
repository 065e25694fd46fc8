"""Allocates devices to claims: the same devices as kube-scheduler's allocator, from plain data.

    pools = DeviceInventory(slices).pools(node)
    allocations = allocate(node, pools, claims, classes, tally)

`inventory` groups slices into pools as a node sees them, `preparation` checks the requests of claims, `search` finds
the devices, and `outcome` writes down what each claim gets. `tally` knows what is in use.
"""

from podium.placement.devices.allocator import InvalidPoolsError, allocate
from podium.placement.devices.inventory import DeviceInventory, DevicePool
from podium.placement.devices.preparation import AllocationError
from podium.placement.devices.tally import DeviceID, DeviceTally

__all__ = [
    "AllocationError",
    "DeviceID",
    "DeviceInventory",
    "DevicePool",
    "DeviceTally",
    "InvalidPoolsError",
    "allocate",
]
