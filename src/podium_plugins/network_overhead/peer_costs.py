"""Adds up, for each node, what it costs to reach the pods that a pod depends on, and how many are too far.

For a node N and a pod on H that the pod depends on, the first line that holds counts:

    N = H                              satisfied                          0
    H has neither region nor zone      violated                           100
    the same region and zone           satisfied                          1
    the cost is known                  satisfied if ≤ maximum, or violated   the cost
    otherwise                          neither                            100

Between zones of one region the cost is that of the zones, else that of the regions. Pods on nodes that are gone do not
count.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster, CountColumn
from podium_plugins.app_group import Dependency
from podium_plugins.network_overhead.locations import SAME_ZONE, UNKNOWN, Locations

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
    """The sums over all peers; None where there are none."""
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
