"""Finds where nodes are: a location is a region and a zone, and a node without the labels is at ("", "").

Thousands of nodes are at a handful of locations, so what it costs to reach a location is worked out once per pair of
locations and spread over the nodes by indexing.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster
from podium.plugins.network_overhead.network_topology import REGION, ZONE, CostTable

SAME_ZONE: Final = 1
UNKNOWN: Final = 100
"""What it costs to reach a pod in the same zone, and one that no cost is known for."""
NOT_KNOWN: Final = -1
"""Stands for the cost of a pair where a maximum cannot be compared with it."""

Costs = NDArray[np.int64]


class Locations:
    """The locations of all rows, as of one version of the labels, with what it costs to get from one to another."""

    def __init__(self, cluster: Cluster, table: CostTable) -> None:
        labels = cluster.labels
        self.version = labels.version
        self.table = table
        region, zone = labels.column(REGION), labels.column(ZONE)
        width = len(zone.values)
        pairs, of_row = np.unique(region.ids.astype(np.int64) * width + zone.ids, return_inverse=True)
        self.of_row: NDArray[np.intp] = of_row
        """Row → number of its location."""
        self._regions = [region.values[pair // width] for pair in pairs.tolist()]
        self._zones = [zone.values[pair % width] for pair in pairs.tolist()]
        self._in_region = _filed(self._regions)
        self._in_zone = _filed(self._zones)
        self.nowhere = np.array([not r and not z for r, z in zip(self._regions, self._zones, strict=True)])
        """bool[locations]: those without region and zone, from where nothing is near."""
        self._known: dict[int, Costs] = {}

    def __len__(self) -> int:
        return len(self._regions)

    def costs_to(self, number: int) -> Costs:
        """From each location to one: the listed cost, 0 inside it (whatever is listed), NOT_KNOWN where none is."""
        known = self._known.get(number)
        if known is None:
            known = self._known[number] = self._costs_to(number)
        return known

    def _costs_to(self, number: int) -> Costs:
        costs = np.full(len(self), NOT_KNOWN, dtype=np.int64)
        region, zone = self._regions[number], self._zones[number]
        if self.nowhere[number]:
            return costs
        for origin, cost in self.table.regions.get(region, {}).items():
            if origin:
                costs[self._in_region.get(origin, [])] = cost
        in_region = self._in_region[region]
        costs[in_region] = NOT_KNOWN
        for origin, cost in self.table.zones.get(zone, {}).items():
            if origin:
                costs[np.intersect1d(self._in_zone.get(origin, []), in_region).astype(np.intp)] = cost
        costs[number] = 0
        return costs


def _filed(values: list[str]) -> dict[str, list[int]]:
    filed: dict[str, list[int]] = {}
    for number, value in enumerate(values):
        filed.setdefault(value, []).append(number)
    return filed
