"""The order in which nodes are visited: round-robin over zones.

kube-scheduler lists the first node of every zone, then the second of every zone, and so on, so that a search that
stops early still sees all zones. Zones stand in first-seen order and nodes in the order they came. The order decides
ties, so it is part of every decision. The list is built anew only when a node comes or goes; a node whose zone label
changes moves in the tree, but not in a list that was already built.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

ZONE_LABELS = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")
REGION_LABELS = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region")


def zone_key(labels: Mapping[str, str]) -> tuple[str, str]:
    """(region, zone) of a node; the older label wins where both are set."""
    return _first(labels, REGION_LABELS), _first(labels, ZONE_LABELS)


def _first(labels: Mapping[str, str], keys: tuple[str, ...]) -> str:
    for key in keys:
        if key in labels:
            return labels[key]
    return ""


class NodeOrder:
    """Rows by zone, and the visiting order made from them."""

    def __init__(self) -> None:
        self._zones: dict[tuple[str, str], dict[int, None]] = {}
        self._zone_of: dict[int, tuple[str, str]] = {}
        self._rows: NDArray[np.intp] | None = None
        self.version = 0

    def add(self, row: int, labels: Mapping[str, str]) -> None:
        self._place(row, zone_key(labels))
        self._changed()

    def update(self, row: int, labels: Mapping[str, str]) -> None:
        zone = zone_key(labels)
        if zone != self._zone_of[row]:
            self._take(row)
            self._place(row, zone)

    def remove(self, row: int) -> None:
        self._take(row)
        self._changed()

    def by_zone(self) -> list[list[int]]:
        """The rows of each zone, zones and rows in the order they came."""
        return [list(rows) for rows in self._zones.values()]

    @property
    def rows(self) -> NDArray[np.intp]:
        """All rows of present nodes in visiting order."""
        if self._rows is None:
            tiers = zip_longest(*self.by_zone())
            self._rows = np.array([row for tier in tiers for row in tier if row is not None], dtype=np.intp)
        return self._rows

    def _place(self, row: int, zone: tuple[str, str]) -> None:
        self._zones.setdefault(zone, {})[row] = None
        self._zone_of[row] = zone

    def _take(self, row: int) -> None:
        zone = self._zone_of.pop(row)
        del self._zones[zone][row]
        if not self._zones[zone]:
            del self._zones[zone]

    def _changed(self) -> None:
        self._rows = None
        self.version += 1
