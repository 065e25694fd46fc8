"""Holds what is known of the zones of all nodes, as columns: zones and rows are axes of arrays, not objects.

For each resource there is one array of slots × rows. A row's zones stand in its first slots, in the order of their
numbers. The arrays hold the available amount plus 1, so that 0, which new rows and unused slots have, says that the
zone does not list the resource. What pods of a row hold in whichever zone (`reserve`) is subtracted from all of its
zones when amounts are asked for.

Reports belong to nodes by name and may come before them. `catch_up` loads the rows whose node or report changed: both
are in the journal of nodes.

Cycles ask about the row where the last pod went, again and again. So the amounts of rows that were asked about one by
one are at hand as plain numbers, too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster, Column, Interned, Rows
from podium_plugins.node_resource_topology_match.topology_object import NO_COST, ManagerSettings, read_topology

UNLISTED: Final = -1
"""What a zone that does not list a resource has of it."""

Amounts = NDArray[np.int64]
Mask = NDArray[np.bool_]


class ZoneLayout(NamedTuple):
    """The numbers of a node's zones, and the distance from each of them to each."""

    numbers: tuple[int, ...] = ()
    costs: tuple[tuple[int, ...], ...] = ()


class ZoneColumns:
    """The zones of all rows; `settings` is None on rows without a report."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._reports: dict[str, Any] = {}
        self._loaded: dict[int, Any] = {}
        self._slots = 1
        self._listed: dict[str, Column] = {}
        self._reserved: dict[str, Column] = {}
        self._plain: dict[int, dict[str, list[int]]] = {}
        """What the zones of a row were reported to have, by resource."""
        self._stale = cluster.columns.new(np.bool_)
        self._stale_names: set[str] = set()
        self.settings: Interned[ManagerSettings | None] = Interned(cluster.columns, None)
        self.layouts: Interned[ZoneLayout] = Interned(cluster.columns, ZoneLayout())
        self._cursor = cluster.node_changes.cursor()

    # Reports, by the name of their node

    def set_report(self, name: str, report: Any | None) -> None:
        """Take over a NodeResourceTopology, as the API wrote it; None: there is none any more."""
        if report is None:
            self._reports.pop(name, None)
        else:
            self._reports[name] = report
        self.changed(name)
        row = self.cluster.row_of.get(name)
        if row is not None and row < len(self.cluster.names) and self._loaded.get(row) is not report:
            self._load(row, report)

    def report(self, name: str) -> Any | None:
        return self._reports.get(name)

    def set_stale(self, name: str, stale: bool) -> None:
        """Whether what is known of a node's zones must not be used."""
        if stale == (name in self._stale_names):
            return
        (self._stale_names.add if stale else self._stale_names.discard)(name)
        row = self.cluster.row_of.get(name)
        if row is not None:
            self._stale.view[row] = stale
            self.cluster.pod_changes.append(row)  # it is pods that make a row stale

    def is_stale(self, name: str) -> bool:
        return name in self._stale_names

    def changed(self, name: str) -> None:
        """Have every answer about a node asked for again."""
        row = self.cluster.row_of.get(name)
        if row is not None:
            self.cluster.node_changes.append(row)

    def reserve(self, row: int, amounts: Iterable[tuple[str, int]], sign: int = 1) -> None:
        """Count amounts as held by pods (+1), or no longer (−1), in whichever zone."""
        for name, amount in amounts:
            column = self._reserved.get(name)
            if column is None:
                column = self._reserved[name] = self.cluster.columns.new(np.int64)
            column.view[row] += sign * amount

    # Rows

    def catch_up(self) -> None:
        """Load the rows whose node or report changed since the last call."""
        if self._cursor.at_end:
            return
        changed = self._cursor.read()
        names = self.cluster.names
        for row in range(len(names)) if changed is None else dict.fromkeys(changed):
            report = self._reports.get(names[row])
            self._stale.view[row] = names[row] in self._stale_names
            if self._loaded.get(row) is not report:
                self._load(row, report)

    def _load(self, row: int, report: Any | None) -> None:
        self._plain.pop(row, None)
        for column in self._listed.values():
            column.view[:, row] = 0
        if report is None:
            del self._loaded[row]
            self.settings.clear(row)
            self.layouts.clear(row)
            return
        self._loaded[row] = report
        topology = read_topology(report)
        self.settings.set(row, topology.settings)
        numbers = tuple(zone.number for zone in topology.zones)
        costs = tuple(tuple(zone.costs.get(number, NO_COST) for number in numbers) for zone in topology.zones)
        self.layouts.set(row, ZoneLayout(numbers, costs))
        self._widen(len(numbers))
        for slot, zone in enumerate(topology.zones):
            for name, amount in zone.available.items():
                self._column(name).view[slot, row] = amount + 1

    def _column(self, name: str) -> Column:
        column = self._listed.get(name)
        if column is None:
            column = self._listed[name] = self.cluster.columns.new(np.int64, (self._slots,))
        return column

    def _widen(self, slots: int) -> None:
        if slots <= self._slots:
            return
        narrow, self._slots, self._listed = self._listed, slots, {}
        for name, column in narrow.items():
            self._column(name).view[: len(column.view)] = column.view

    # Amounts

    @property
    def stale(self) -> Mask:
        """bool[rows]: what is known of the zones must not be used."""
        return self._stale.view

    def zone_numbers(self, row: int) -> tuple[int, ...]:
        return self.layouts.values[self.layouts.numbers.item(row)].numbers

    def exists(self, rows: Rows) -> Mask:
        """bool[slots, rows]: the row has a zone in the slot."""
        counts = np.array([len(layout.numbers) for layout in self.layouts.values])[self.layouts.numbers[rows]]
        there: Mask = np.arange(self._slots)[:, None] < counts
        return there

    def available(self, name: str, rows: Rows) -> Amounts:
        """int64[slots, rows]: what each zone of some rows has left; UNLISTED where it does not list the resource."""
        column = self._listed.get(name)
        if column is None:
            return np.full((self._slots, len(rows)), UNLISTED, dtype=np.int64)
        left: Amounts = column.view[:, rows] - 1
        reserved = self._reserved.get(name)
        if reserved is not None:
            listed = left >= 0
            left -= reserved.view[rows]
            left[listed & (left < 0)] = 0
            left[~listed] = UNLISTED
        return left

    def reported_on(self, name: str, row: int) -> list[int]:
        """What each zone of one row was reported to have; to be read only."""
        plain = self._plain.get(row)
        if plain is None:
            plain = self._plain[row] = {}
        amounts = plain.get(name)
        if amounts is None:
            column, zones = self._listed.get(name), len(self.zone_numbers(row))
            amounts = [UNLISTED] * zones if column is None else (column.view[:zones, row] - 1).tolist()
            plain[name] = amounts
        return amounts

    def held_on(self, name: str, row: int) -> int:
        """How much pods hold on one row, in whichever zone."""
        reserved = self._reserved.get(name)
        held: int = 0 if reserved is None else reserved.view.item(row)
        return held

    def available_on(self, name: str, row: int) -> list[int]:
        """What each zone of one row has left; UNLISTED where it does not list the resource."""
        reported, held = self.reported_on(name, row), self.held_on(name, row)
        if not held:
            return reported.copy()
        return [have - held if have > held else 0 if have > UNLISTED else UNLISTED for have in reported]
