"""Keeps the order in which nodes are visited: round-robin over zones.

kube-scheduler lists the first node of every zone, then the second of every zone, and so on, so that a search that
stops early still sees all zones. Zones stand in first-seen order and nodes in the order they came. The order decides
ties, so it is part of every decision. The list changes only when a node comes or goes; a node whose zone label changes
moves in the tree, but not in a list that was already built.

A list that is being read is patched, not built again: who comes takes the turn behind the last of its zone; when one
goes, those behind it in its zone move up by one turn each, and the zone's last turn falls away.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

ZONE_LABELS = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")
REGION_LABELS = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region")

PATCHES = 16
"""After so many changes without a reader, the list is built from scratch for the next one."""

Rows = NDArray[np.intp]
ZoneKey = tuple[str, str]


def zone_key(labels: Mapping[str, str]) -> ZoneKey:
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
        self._zones: dict[ZoneKey, dict[int, None]] = {}
        self._zone_of: dict[int, ZoneKey] = {}
        self._numbers: dict[ZoneKey, int] = {}
        self._built: Turns | None = None
        self._patches = 0
        self.version = 0

    def add(self, row: int, labels: Mapping[str, str]) -> None:
        zone = zone_key(labels)
        self._add_to_zone(row, zone)
        built = self._to_patch()
        if built is not None:
            number, turn = self._numbers[zone], self._last_turn(zone)
            self._built = Turns(_with(built.rows, turn, row), _with(built.zones, turn, number))

    def update(self, row: int, labels: Mapping[str, str]) -> None:
        zone = zone_key(labels)
        if zone != self._zone_of[row]:
            self._take(row)
            self._add_to_zone(row, zone)
            self._patches = PATCHES  # the list no longer follows from the tree

    def remove(self, row: int) -> None:
        number = self._numbers[self._take(row)]
        built = self._to_patch()
        if built is not None:
            turn = int((built.rows == row).argmax())
            later = np.flatnonzero(built.zones[turn:] == number) + turn
            last = int(later[-1])
            rows = _without(built.rows, last)
            rows[later[:-1]] = built.rows[later[1:]]
            self._built = Turns(rows, _without(built.zones, last))

    def saved(self) -> SavedOrder:
        """The order as it is, for `restore`."""
        zones = {zone: dict(rows) for zone, rows in self._zones.items()}
        return SavedOrder(zones, dict(self._zone_of), self._built, self._patches)

    def restore(self, saved: SavedOrder) -> None:
        """Take the order back to what it was; the same rows must be there again."""
        self._zones, self._zone_of, self._built, self._patches = saved
        self.version += 1

    def by_zone(self) -> list[list[int]]:
        """The rows of each zone, zones and rows in the order they came."""
        return [list(rows) for rows in self._zones.values()]

    @property
    def rows(self) -> Rows:
        """All rows of present nodes in visiting order; never changed in place."""
        if self._built is None:
            self._built = self._build()
            self._patches = 0
        elif self._patches < PATCHES:
            self._patches = 0
        return self._built.rows

    def _build(self) -> Turns:
        if not self._zones:
            return Turns(np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.intp))
        sizes = [len(rows) for rows in self._zones.values()]
        rows = np.fromiter(chain.from_iterable(self._zones.values()), dtype=np.intp, count=sum(sizes))
        zones = np.repeat([self._numbers[zone] for zone in self._zones], sizes)
        turns = np.argsort(np.concatenate([np.arange(size) for size in sizes]), kind="stable")
        return Turns(rows[turns], zones[turns])

    def _to_patch(self) -> Turns | None:
        """Note that a node came or went; the list to be patched, None where building it from scratch is as good."""
        self.version += 1
        self._patches += 1
        if self._patches > PATCHES:
            self._built = None
        return self._built

    def _last_turn(self, zone: ZoneKey) -> int:
        """How many nodes are visited before the last one of a zone."""
        size, turn, before = len(self._zones[zone]), 0, 1
        for other, rows in self._zones.items():
            if other == zone:
                before = 0
            turn += min(len(rows), size - 1 + before)
        return turn

    def _add_to_zone(self, row: int, zone: ZoneKey) -> None:
        self._numbers.setdefault(zone, len(self._numbers))
        self._zones.setdefault(zone, {})[row] = None
        self._zone_of[row] = zone

    def _take(self, row: int) -> ZoneKey:
        zone = self._zone_of.pop(row)
        del self._zones[zone][row]
        if not self._zones[zone]:
            del self._zones[zone]
        return zone


class SavedOrder(NamedTuple):
    """What an order was."""

    zones: dict[ZoneKey, dict[int, None]]
    zone_of: dict[int, ZoneKey]
    built: Turns | None
    patches: int


class Turns(NamedTuple):
    """The visiting order: the row whose turn it is, and the number of its zone."""

    rows: Rows
    zones: Rows


def _with(values: Rows, turn: int, value: int) -> Rows:
    return np.concatenate((values[:turn], (value,), values[turn:]))


def _without(values: Rows, turn: int) -> Rows:
    return np.concatenate((values[:turn], values[turn + 1 :]))
