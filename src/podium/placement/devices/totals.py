"""Counts the devices behind an extended resource on a node: how many there are, and how many of them are in use.

Scores treat these like what a node offers of a resource and what its pods ask for, on nodes that offer none of it
themselves. All slices count that a node can use, whatever their pools say; a class whose selectors cannot be evaluated
counts as none. Selectors do not learn whether a device can be allocated several times.
"""

from __future__ import annotations

from collections.abc import Sequence

from podium.cluster import Nodes
from podium.cluster.resources import Amounts
from podium.kube import DeviceClass, Node
from podium.kube.cel import DeviceSelectorError
from podium.placement.devices.inventory import DeviceInventory, OfferedDevice, device_matches, node_matches
from podium.placement.devices.tally import DeviceID
from podium.placement.devices.uses import DeviceUses


class DeviceTotals:
    """The devices of classes by node, as long as slices, labels and classes stay as they are."""

    def __init__(self, uses: DeviceUses) -> None:
        self._uses = uses
        self._inventory: DeviceInventory | None = None
        self._found: dict[tuple[str, str], tuple[DeviceClass, Node, tuple[DeviceID, ...]]] = {}

    def names(self, resources: Sequence[str]) -> tuple[str, ...]:
        """Those of the resources that a class stands behind."""
        class_of = self._uses.resources.class_of
        return tuple(name for name in resources if class_of(name) is not None)

    def fill_in(self, nodes: Nodes, resources: Sequence[str], allocatable: Amounts, used: Amounts) -> None:
        """Put numbers of devices where nodes offer none of a resource; one line for each resource."""
        for line, resource in enumerate(resources):
            device_class = self._uses.resources.class_of(resource)
            if device_class is None:
                continue
            for position in (allocatable[line] == 0).nonzero()[0].tolist():
                node = nodes.cluster.nodes[int(nodes.rows[position])]
                devices = self._devices(device_class, node) if node is not None else ()
                if devices:
                    allocatable[line, position] = len(devices)
                    used[line, position] = sum(map(self._uses.tally.is_allocated, devices))

    def _devices(self, device_class: DeviceClass, node: Node) -> tuple[DeviceID, ...]:
        inventory = self._uses.inventory
        if self._inventory is not inventory:
            self._inventory = inventory
            self._found.clear()
        key = device_class.name, node.name
        known = self._found.get(key)
        if known is None or known[0] is not device_class or known[1] is not node:
            known = self._found[key] = device_class, node, _matching(device_class, node, inventory)
        return known[2]


def _matching(device_class: DeviceClass, node: Node, inventory: DeviceInventory) -> tuple[DeviceID, ...]:
    expressions = [each.cel.expression for each in device_class.spec.selectors if each.cel]
    try:
        return tuple(
            offered.id
            for offered in inventory.offered_to(node)
            if _is_for(offered, node) and all(map(offered.selected_for_counting, expressions))
        )
    except DeviceSelectorError:
        return ()


def _is_for(offered: OfferedDevice, node: Node) -> bool:
    spec = offered.slice.spec
    if spec.per_device_node_selection:
        return device_matches(node, offered.device)
    return node_matches(node, spec.node_name, all_nodes=spec.all_nodes, selector=spec.node_selector)
