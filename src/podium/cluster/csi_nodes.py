"""Holds what each node's CSINode object says, as columns: volume limits per driver, and in-tree plugins moved to CSI.

CSINode objects carry the name of their node and may come before or after it. A row without one has no limits, and
nothing has moved there. A CSINode object counts as part of its node: when it changes, the node has changed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from podium.cluster.columns import Column, ColumnSet, Interned
from podium.cluster.objects import Store
from podium.kube import CSINode

NO_LIMIT = 2**62
MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"


class CsiNodeColumns:
    def __init__(self, columns: ColumnSet, store: Store[CSINode], changed: Callable[[int], None]) -> None:
        """`changed` is called with rows whose CSINode object changes."""
        self._columns = columns
        self._store = store
        self._changed = changed
        self._row_of: dict[str, int] = {}
        self._present = columns.new(np.bool_)
        self._limited = columns.new(np.bool_)
        self._limits: dict[str, Column] = {}
        self.migrated: Interned[frozenset[str]] = Interned(columns, frozenset())
        self._drivers: Interned[frozenset[str]] = Interned(columns, frozenset())
        store.follow(self._follow)

    @property
    def present(self) -> NDArray[np.bool_]:
        """bool[rows]: the node has a CSINode object."""
        return self._present.view

    @property
    def limited(self) -> NDArray[np.bool_]:
        """bool[rows]: some driver has a limit there."""
        return self._limited.view

    @property
    def has_limits(self) -> bool:
        """Whether there ever was a limit."""
        return bool(self._limits)

    def limits(self, driver: str) -> NDArray[np.int64] | None:
        """int64[rows]: how many volumes of the driver a node takes, or NO_LIMIT; None where no node has a limit."""
        column = self._limits.get(driver)
        return None if column is None else column.view

    def installed(self, driver: str, rows: NDArray[np.intp] | None) -> NDArray[np.bool_]:
        """bool[rows]: the driver is installed on the node."""
        return self._drivers.ask(lambda names: driver in names, np.bool_, rows)

    def add_row(self, row: int, name: str) -> None:
        self._row_of[name] = row
        self._set(row, self._store.get(name))

    def remove_row(self, row: int, name: str) -> None:
        del self._row_of[name]
        self._set(row, None)

    def _follow(self, key: str, before: CSINode | None, after: CSINode | None) -> None:
        row = self._row_of.get(key)
        if row is not None:
            self._set(row, after)
            self._changed(row)

    def _set(self, row: int, node: CSINode | None) -> None:
        limits = _limits(node)
        for driver in limits.keys() - self._limits.keys():
            self._limits[driver] = self._columns.new(np.int64)
            self._limits[driver].view[:] = NO_LIMIT
        for driver, column in self._limits.items():
            column.view[row] = limits.get(driver, NO_LIMIT)
        self._present.view[row] = node is not None
        self._limited.view[row] = bool(limits)
        self.migrated.set(row, migrated_plugins(node))
        self._drivers.set(row, frozenset() if node is None else frozenset(each.name for each in node.spec.drivers))


def _limits(node: CSINode | None) -> dict[str, int]:
    if node is None:
        return {}
    return {
        driver.name: driver.allocatable.count
        for driver in node.spec.drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }


def migrated_plugins(node: CSINode | None) -> frozenset[str]:
    """The in-tree plugins that are served by CSI drivers on the node."""
    listed = "" if node is None else node.annotations.get(MIGRATED_PLUGINS, "")
    return frozenset(listed.split(",")) if listed else frozenset()
