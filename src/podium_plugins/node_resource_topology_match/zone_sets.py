"""Lists the sets of a node's zones, size by size, those whose zones are nearest to each other first.

The distance of a set is the mean cost over all ordered pairs of its zones, each zone with itself included, in 32-bit
floats as the original computes it. A set is optimal if no set of its size has a lower distance; no distance counts as
lower than 255 makes it.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium_plugins.node_resource_topology_match.topology_object import NO_COST
from podium_plugins.node_resource_topology_match.zone_columns import ZoneLayout

MOST_ZONES_IN_SETS: Final = 12
"""Nodes with more zones have too many sets to look at."""
FARTHEST: Final = 256.0
"""Sets from this distance on are not taken."""


class ZoneSets(NamedTuple):
    """All sets of one size that may be taken, the nearest first; of equally near ones the one with lower slots."""

    slots: tuple[tuple[int, ...], ...]
    members: NDArray[np.int64]
    """0 or 1 [sets, zones]: the same as a matrix."""
    optimal: NDArray[np.bool_]
    """bool[sets]"""


@lru_cache(maxsize=1024)
def zone_sets(layout: ZoneLayout, size: int) -> ZoneSets:
    zones = range(len(layout.numbers))
    slots = list(combinations(zones, size))
    costs = np.array(layout.costs, dtype=np.int64).reshape(len(zones), len(zones))
    distances = np.array(
        [np.float32(costs[np.ix_(each, each)].sum()) / np.float32(size * size) for each in slots], dtype=np.float32
    )
    nearest = min(float(distances.min()), float(NO_COST))
    order = [index for index in np.argsort(distances, kind="stable").tolist() if distances[index] < FARTHEST]
    members = np.zeros((len(order), len(zones)), dtype=np.int64)
    for position, index in enumerate(order):
        members[position, list(slots[index])] = 1
    return ZoneSets(tuple(slots[index] for index in order), members, distances[order] == nearest)
