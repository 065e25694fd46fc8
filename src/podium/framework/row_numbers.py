"""Whole numbers about each row that the cluster does not keep itself: a node's capacity, sums over its pods.

They are worked out row by row, once, and again for the rows that the cluster's journals name. So what costs a look at
every pod of a node is paid for the nodes where pods came or went, not for all nodes in every cycle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster, Journal
from podium.cluster.columns import Column


class RowNumbers:
    """`of_row(cluster, row)` gives the numbers of a row. `pods`: they depend on its pods, not only on its node."""

    def __init__(self, lines: int, of_row: Callable[[Cluster, int], Sequence[int]], *, pods: bool) -> None:
        self._lines = lines
        self._of_row = of_row
        self._pods = pods
        self._again: dict[int, None] = {}
        self._cluster: Cluster | None = None
        self._column: Column
        self._read: list[int] = []

    def over_rows(self, cluster: Cluster) -> NDArray[np.int64]:
        """int64[line, row], up to date; to be read only."""
        changed = self._changed(cluster)
        view: NDArray[np.int64] = self._column.view
        for row in changed:
            view[:, row] = self._of_row(cluster, row)
        return view

    def on(self, cluster: Cluster, row: int) -> list[int]:
        """The numbers of one row."""
        numbers: list[int] = self.over_rows(cluster)[:, row].tolist()
        return numbers

    def ask_again(self, rows: Iterable[int]) -> None:
        """What the journals do not tell of moved on these rows."""
        self._again.update(dict.fromkeys(rows))

    def _changed(self, cluster: Cluster) -> Iterable[int]:
        journals: list[Journal[int]] = [cluster.node_changes, *([cluster.pod_changes] if self._pods else ())]
        read, self._read = self._read, [journal.end for journal in journals]
        if cluster is not self._cluster:
            self._cluster, self._column = cluster, cluster.columns.new(np.int64, (self._lines,))
            self._again.clear()
            return range(cluster.columns.rows)
        if read == self._read and not self._again:
            return ()
        changed, self._again = self._again, {}
        for journal, position in zip(journals, read, strict=True):
            rows = journal.since(position)
            if rows is None or position > journal.end:
                return range(cluster.columns.rows)
            changed.update(dict.fromkeys(rows))
        return changed
