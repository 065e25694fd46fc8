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
from podium.placement.app_group import Dependency
from podium.plugins.network_overhead.locations import NOT_KNOWN, SAME_ZONE, UNKNOWN, Locations

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
    present, of_row, size = cluster.present, locations.of_row, len(locations)
    satisfied, violated, costs = (np.zeros(size, dtype=np.int64) for _ in range(3))
    together = np.zeros(cluster.columns.rows, dtype=np.int64)
    for dependency, column in peers:
        on_row = np.where(present, column.per_row, 0)
        on_location = np.bincount(of_row, weights=on_row, minlength=size).astype(np.int64)
        together += on_row
        for number in np.flatnonzero(on_location).tolist():
            count = int(on_location[number])
            if locations.nowhere[number]:
                violated += count
                costs += count * UNKNOWN
                continue
            to_it = locations.costs_to(number)
            known = to_it != NOT_KNOWN
            near = known & (to_it <= dependency.max_network_cost)
            near[number] = True
            satisfied += count * near
            violated += count * (known & ~near)
            costs += count * np.where(known, to_it, UNKNOWN)
            costs[number] += count * SAME_ZONE
    if not together.any():
        return None
    # On the node itself a peer costs nothing and is satisfied, whatever its location says.
    lost = locations.nowhere[of_row]
    return PeerCosts(
        satisfied[of_row] + np.where(lost, together, 0),
        violated[of_row] - np.where(lost, together, 0),
        costs[of_row] - together * np.where(lost, UNKNOWN, SAME_ZONE),
    )
