"""Counts the devices behind an extended resource on a node: how many there are, and how many of them are in use.

Scores treat these like what a node offers of a resource and what its pods ask for, on nodes that offer none of it
themselves. All slices count that a node can use, whatever their pools say; a class whose selectors cannot be evaluated
counts as none. Selectors do not learn whether a device can be allocated several times.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from kubecel import DeviceSelectorError
from podium.cluster import Cluster, Nodes
from podium.cluster.resources import Amounts
from podium.kube import DeviceClass, Node
from podium.placement.devices.inventory import DeviceInventory, OfferedDevice, PoolID, device_matches, node_matches
from podium.placement.devices.tally import DeviceID
from podium.placement.devices.uses import DeviceUses


class DeviceTotals:
    """The devices of classes by node, counted again where something changed."""

    def __init__(self, uses: DeviceUses) -> None:
        self._uses = uses
        self._counts: dict[str, ClassCounts] = {}

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
            counts = self._counts.get(resource)
            if counts is None or counts.device_class is not device_class:
                counts = self._counts[resource] = ClassCounts(device_class, nodes.cluster, self._uses)
            counts.refresh()
            there, in_use = counts.there[nodes.rows], counts.in_use[nodes.rows]
            where = (allocatable[line] == 0) & (there > 0)
            allocatable[line, where] = there[where]
            used[line, where] = in_use[where]


class ClassCounts:
    """How many devices of one class each row has, and how many of them are in use."""

    def __init__(self, device_class: DeviceClass, cluster: Cluster, uses: DeviceUses) -> None:
        self.device_class = device_class
        self._cluster = cluster
        self._uses = uses
        self._inventory: DeviceInventory | None = None
        self._pools = uses.changed_pools.cursor()
        self._nodes = cluster.node_changes.cursor()
        self._devices: dict[int, tuple[DeviceID, ...]] = {}
        self._rows_of: dict[PoolID, set[int]] = {}
        self.there = np.zeros(0, dtype=np.int64)
        self.in_use = np.zeros(0, dtype=np.int64)

    def refresh(self) -> None:
        inventory, rows = self._uses.inventory, self._cluster.columns.rows
        pools, nodes = self._pools.read(), self._nodes.read()
        recounted: Iterable[int]
        if self._inventory is not inventory or pools is None or nodes is None or len(self.there) != rows:
            self._inventory = inventory
            self._devices.clear()
            self._rows_of.clear()
            self.there, self.in_use = np.zeros(rows, dtype=np.int64), np.zeros(rows, dtype=np.int64)
            recounted = range(rows)
        else:
            for row in nodes:
                self._devices.pop(row, None)
            recounted = {*nodes, *(row for pool in dict.fromkeys(pools) for row in self._rows_of.get(pool, ()))}
        is_allocated = self._uses.tally.is_allocated
        for row in recounted:
            devices = self._devices.get(row)
            if devices is None:
                devices = self._devices[row] = self._find(inventory, row)
            self.there[row] = len(devices)
            self.in_use[row] = sum(map(is_allocated, devices))

    def _find(self, inventory: DeviceInventory, row: int) -> tuple[DeviceID, ...]:
        node = self._cluster.nodes[row]
        devices = _matching(self.device_class, node, inventory) if node is not None else ()
        for each in devices:
            self._rows_of.setdefault((each.driver, each.pool), set()).add(row)
        return devices


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
