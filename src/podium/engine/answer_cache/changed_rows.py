"""Reads which rows changed, and holds them until the plugins have been asked about them."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np

from podium.cluster import Cluster, NodeInfo, Nodes, RowCursor

FEW_ROWS = 4
"""Up to so many rows, asking one by one is quicker than asking with arrays."""

RowSet = dict[int, None]
"""Rows in the order they changed."""


def read_changes(cursor: RowCursor, cluster: Cluster) -> tuple[Collection[int], Collection[int]] | None:
    """(rows whose node changed, those and the rows whose pods changed); None: too many, or it cannot be said."""
    changed = cursor.read()
    if changed is None:
        return None
    nodes, pods = changed
    if not nodes and len(pods) <= 1:
        return changed
    if len(nodes) + len(pods) > cluster.columns.rows // 2 + FEW_ROWS:
        return None
    return dict.fromkeys(nodes), dict.fromkeys((*nodes, *pods))


class ChangedRows:
    """Rows that changed, in the forms in which plugins are asked about them."""

    __slots__ = ("_cluster", "_infos", "_nodes", "all_rows", "rows")

    def __init__(self, cluster: Cluster, all_rows: Iterable[int]) -> None:
        present = cluster.present
        self.all_rows = all_rows
        """With or without a node."""
        self.rows = [row for row in all_rows if present[row]]
        """Those with a node. Of the others nothing is asked: whatever is cached of them does not count."""
        self._cluster = cluster
        self._nodes: Nodes | None = None
        self._infos: list[NodeInfo] | None = None

    @property
    def nodes(self) -> Nodes:
        if self._nodes is None:
            self._nodes = Nodes(self._cluster, np.array(self.rows, dtype=np.intp))
        return self._nodes

    @property
    def infos(self) -> list[NodeInfo]:
        """The rows one by one."""
        if self._infos is None:
            self._infos = [NodeInfo(self._cluster, row) for row in self.rows]
        return self._infos


class PendingRows:
    """Changed rows that plugins have not been asked about yet: while no node fits, no score is asked for."""

    __slots__ = ("_cluster", "_none", "_parts", "_size")

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._none = ChangedRows(cluster, ())
        self._parts: list[ChangedRows] = []
        self._size = 0

    def add(self, changed: ChangedRows) -> None:
        self._parts.append(changed)
        self._size += len(changed.rows)
        if self._size > 2 * self._cluster.columns.rows:
            self.add(self.take())  # each row once

    def take(self) -> ChangedRows:
        """All of them; none is pending afterwards."""
        if not self._parts:
            return self._none
        parts, self._parts, self._size = self._parts, [], 0
        if len(parts) == 1:
            return parts[0]
        return ChangedRows(self._cluster, dict.fromkeys(row for part in parts for row in part.rows))
