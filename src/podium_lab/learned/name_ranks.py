"""Keeps the rank of each row, a hash of its node's name, as nodes come and go."""

from __future__ import annotations

import numpy as np

from podium.cluster import Cluster
from podium_plugins.gpu.terms import Floats, rank_of


class NameRanks:
    """Numbers from 0 to 1, one per row."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._cursor = cluster.row_cursor()
        self._column: Floats = np.zeros(0)

    def column(self) -> Floats:
        """float64[rows], up to date."""
        cluster, column = self._cluster, self._column
        if not self._cursor.at_end:
            changes = self._cursor.read()
            if changes is None or len(column) != cluster.columns.rows:
                names = cluster.names
                self._column = column = np.zeros(cluster.columns.rows)
                column[: len(names)] = [rank_of(name) for name in names]
            else:
                for row in changes[0]:
                    column[row] = rank_of(cluster.names[row])
        return column
