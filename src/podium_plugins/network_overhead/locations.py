"""Finds where nodes are, and what it costs to reach pods from there.

A location is a region and a zone, and a node without the labels is at ("", "").

Thousands of nodes are at a handful of locations, so what it costs to reach a location is worked out once per pair of
locations and spread over the nodes by indexing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster, CountColumn
from podium_plugins.app_group import Dependency
from podium_plugins.network_overhead.network_topology import REGION, ZONE, CostTable

SAME_ZONE: Final = 1
UNKNOWN: Final = 100
"""What it costs to reach a pod in the same zone, and one that no cost is known for."""
NOT_KNOWN: Final = -1
"""Stands for the cost of a pair where a maximum cannot be compared with it."""
FEW_LOCATIONS: Final = 256
"""Of up to so many locations all pairs are kept."""
MOST_MAXIMA: Final = 16
"""For so many maxima."""

Costs = NDArray[np.int64]
Effects = NDArray[np.float64]
"""[satisfied, violated, cost], by location of the pod and of the node: what one pod adds. All are whole numbers, in the
type that is multiplied fastest."""


class Locations:
    """The locations of all rows, as of one version of the labels, with what it costs to get from one to another."""

    def __init__(self, cluster: Cluster, table: CostTable) -> None:
        labels = cluster.labels
        self.version = labels.version
        self.table = table
        region, zone = labels.column(REGION), labels.column(ZONE)
        width = len(zone.values)
        pairs, of_row = np.unique(region.ids.astype(np.int64) * width + zone.ids, return_inverse=True)
        self.of_row: NDArray[np.intp] = np.where(cluster.present, of_row, len(pairs))
        """Row → number of its location; one more than there are where the node is gone."""
        self._regions = [region.values[pair // width] for pair in pairs.tolist()]
        self._zones = [zone.values[pair % width] for pair in pairs.tolist()]
        self._in_region = _filed(self._regions)
        self._in_zone = _filed(self._zones)
        self.nowhere = np.array([not r and not z for r, z in zip(self._regions, self._zones, strict=True)])
        """bool[locations]: those without region and zone, from where nothing is near."""
        self._effects: dict[int, Effects] = {}

    def __len__(self) -> int:
        return len(self._regions)

    def add_up(self, pods: NDArray[np.float64], most: int) -> Effects:
        """What pods add, so many at each location, where a cost up to `most` is near: per location of nodes."""
        if len(self) <= FEW_LOCATIONS:
            known = self._effects.get(most)
            if known is None:
                if len(self._effects) >= MOST_MAXIMA:
                    self._effects.clear()
                known = self._effects[most] = self._effects_of(range(len(self)), most)
            added: Effects = np.matmul(pods, known)
            return added
        total = np.zeros((3, len(self)))
        held = np.flatnonzero(pods)
        for start in range(0, len(held), FEW_LOCATIONS):
            some = held[start : start + FEW_LOCATIONS]
            total += np.matmul(pods[some], self._effects_of(some.tolist(), most))
        return total

    def _effects_of(self, numbers: Sequence[int], most: int) -> Effects:
        """The effects of pods at some locations."""
        costs = np.array([self._costs_to(number) for number in numbers])
        known = costs != NOT_KNOWN
        near = known & (costs <= most)
        near[np.arange(len(numbers)), numbers] = ~self.nowhere[list(numbers)]
        far = known & ~near
        far[self.nowhere[list(numbers)]] = True
        return np.stack((near, far, np.where(known, costs, UNKNOWN))).astype(np.float64)

    def _costs_to(self, number: int) -> Costs:
        """From each location to one: the cost that counts, NOT_KNOWN where there is none."""
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
        costs[number] = SAME_ZONE
        return costs


def _filed(values: list[str]) -> dict[str, list[int]]:
    filed: dict[str, list[int]] = {}
    for number, value in enumerate(values):
        filed.setdefault(value, []).append(number)
    return filed


Sums = NDArray[np.int64]


class PeerCosts:
    """What one pod finds: int64[rows] each. `moved` is what a dry run changed: pods that came to a row, or left it."""

    __slots__ = ("costs", "moved", "satisfied", "violated")

    def __init__(self, satisfied: Sums, violated: Sums, costs: Sums) -> None:
        self.satisfied = satisfied
        self.violated = violated
        self.costs = costs
        self.moved: dict[int, int] = {}

    def clone(self) -> PeerCosts:
        """For a dry run: it only ever moves pods of the row that it is about, where they are satisfied."""
        copy = PeerCosts(self.satisfied, self.violated, self.costs)
        copy.moved = dict(self.moved)
        return copy


def peer_costs(cluster: Cluster, locations: Locations, peers: list[tuple[Dependency, CountColumn]]) -> PeerCosts | None:
    """What it costs each node to reach the pods that a pod depends on, and how many are too far.

    For a node N and a pod on H that the pod depends on, the first line that holds counts:

        N = H                              satisfied                          0
        H has neither region nor zone      violated                           100
        the same region and zone           satisfied                          1
        the cost is known                  satisfied if ≤ maximum, or violated   the cost
        otherwise                          neither                            100

    Between zones of one region the cost is that of the zones, else that of the regions. Pods on nodes that are gone do
    not count.

    The sums over all peers; None where there are none.
    """
    of_row, size = locations.of_row, len(locations)
    sums = np.zeros((3, size + 1))
    found = 0.0
    for dependency, column in peers:
        at_location = np.bincount(of_row, weights=column.per_row, minlength=size + 1)[:size].astype(np.float64)
        found += float(at_location.sum())
        sums[:, :size] += locations.add_up(at_location, dependency.max_network_cost)
    if not found:
        return None
    satisfied, violated, costs = sums.astype(np.int64).take(of_row, axis=1)
    # On the node itself a peer costs nothing and is satisfied, whatever its location says.
    nowhere = np.append(locations.nowhere, False)
    for _dependency, column in peers:
        rows = np.flatnonzero(column.per_row)
        own, lost = column.per_row[rows], nowhere[of_row[rows]]
        satisfied[rows] += own * lost
        violated[rows] -= own * lost
        costs[rows] -= own * np.where(lost, UNKNOWN, SAME_ZONE)
    return PeerCosts(satisfied, violated, costs)
