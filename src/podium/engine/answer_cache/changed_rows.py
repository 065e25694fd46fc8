"""What moved since answers were kept: rows, by the cluster's journals, and the rest, by the plugins' marks.

The journals tell which nodes came, went or changed and on which nodes pods did. What a plugin's answer depends on
beyond that is summed up in its mark; while it stands, nothing but the rows in the journals need be asked about.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from typing import Any

import numpy as np

from podium.cluster import Cluster, NodeInfo, Nodes
from podium.framework.watermarks import watermark_of

FEW_ROWS = 4
"""Up to so many rows, asking one by one is quicker than asking with arrays."""

RowSet = dict[int, None]
"""Rows in the order they changed."""


class Again:
    """Rows to ask about again. Those without a node are left out: what was said of them does not count."""

    __slots__ = ("_cluster", "_infos", "_nodes", "asked", "rows")

    def __init__(self, cluster: Cluster, asked: Iterable[int]) -> None:
        present = cluster.present
        self.asked = asked
        """All rows in question, with or without a node."""
        self.rows = [row for row in asked if present[row]]
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


class Backlog:
    """Rows to ask about again, gathered until somebody does; while no node fits, nobody asks for scores."""

    __slots__ = ("_cluster", "_none", "_parts", "_size")

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._none = Again(cluster, ())
        self._parts: list[Again] = []
        self._size = 0

    def add(self, again: Again) -> None:
        self._parts.append(again)
        self._size += len(again.rows)
        if self._size > 2 * self._cluster.columns.rows:
            self.add(self.taken())  # each row once

    def taken(self) -> Again:
        """All rows gathered; from here on they are the caller's business."""
        if not self._parts:
            return self._none
        parts, self._parts, self._size = self._parts, [], 0
        if len(parts) == 1:
            return parts[0]
        return Again(self._cluster, dict.fromkeys(row for part in parts for row in part.rows))


class Moves:
    """Reads the journals: which rows changed since they were last read."""

    __slots__ = ("_cluster", "_cursor")

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._cursor = cluster.row_cursor()

    def moved(self) -> tuple[Collection[int], Collection[int]] | None:
        """(rows whose node changed, those and the rows whose pods changed); None: too many or too long ago."""
        changed = self._cursor.read()
        if changed is None:
            return None
        nodes, pods = changed
        if len(nodes) + len(pods) > self._cluster.columns.rows // 2 + FEW_ROWS:
            return None
        if not nodes and len(pods) <= 1:
            return nodes, pods
        return dict.fromkeys(nodes), dict.fromkeys((*nodes, *pods))

    @property
    def nothing(self) -> bool:
        """Whether no row has changed since."""
        return self._cursor.at_end


class Freshness:
    """A plugin's mark: while it stands, what journals do not tell has not changed."""

    __slots__ = ("mark", "marker")

    def __init__(self, plugin: Any) -> None:
        self.marker = watermark_of(plugin)
        self.mark: Hashable = None
