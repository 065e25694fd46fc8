"""Numbers about each row that the cluster does not keep itself: a node's capacity, sums over its pods.

They are worked out row by row, once, and again for the rows that the cluster's journals name. So what costs a look at
every pod of a node is paid for the nodes where pods came or went, not for all nodes in every cycle. Numbers go into the
column when somebody wants all of it: most cycles want one row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from podium.cluster import Cluster
from podium.cluster.columns import Column


class RowNumbers:
    """`of_row(cluster, row)` gives the numbers of a row. `pods`: they depend on its pods, not only on its node."""

    def __init__(
        self,
        lines: int,
        of_row: Callable[[Cluster, int], Sequence[Any]],
        *,
        pods: bool,
        dtype: DTypeLike = np.int64,
    ) -> None:
        self._lines = lines
        self._dtype = dtype
        self._of_row = of_row
        self._pods = pods
        self._again: dict[int, None] = {}
        self._cluster: Cluster | None = None
        self._nodes_read = self._pods_read = -1
        self._numbers: list[Sequence[Any]] = []
        self._unwritten: dict[int, None] = {}
        self._column: Column

    def over_rows(self, cluster: Cluster) -> NDArray[Any]:
        """Numbers[line, row], up to date; to be read only."""
        self._catch_up(cluster)
        view = self._column.view
        if self._unwritten:
            rows, self._unwritten = list(self._unwritten), {}
            view[:, rows] = np.array([self._numbers[row] for row in rows], dtype=self._dtype).T
        return view

    def on(self, cluster: Cluster, row: int) -> Sequence[Any]:
        """The numbers of one row."""
        self._catch_up(cluster)
        return self._numbers[row]

    def ask_again(self, rows: Iterable[int]) -> None:
        """What the journals do not tell of moved on these rows."""
        self._again.update(dict.fromkeys(rows))

    def _catch_up(self, cluster: Cluster) -> None:
        nodes, pods = cluster.node_changes.end, cluster.pod_changes.end if self._pods else -1
        if nodes == self._nodes_read and pods == self._pods_read and not self._again and cluster is self._cluster:
            return
        if cluster is not self._cluster:
            self._cluster, self._column = cluster, cluster.columns.new(self._dtype, (self._lines,))
            self._unwritten.clear()
            self._numbers.clear()
        changed = self._changed(cluster)
        self._again = {}
        self._nodes_read, self._pods_read = nodes, pods
        numbers, missing = self._numbers, cluster.columns.rows - len(self._numbers)
        if missing:
            numbers += [()] * missing
        for row in changed:
            numbers[row] = self._of_row(cluster, row)
            self._unwritten[row] = None

    def _changed(self, cluster: Cluster) -> Iterable[int]:
        """The rows to ask about; all of them where the journals do not reach back far enough."""
        if not self._numbers:
            return range(cluster.columns.rows)
        changed = self._again
        for journal, read in ((cluster.node_changes, self._nodes_read), (cluster.pod_changes, self._pods_read)):
            if read == journal.end or (journal is cluster.pod_changes and not self._pods):
                continue
            rows = journal.since(read)
            if rows is None or read > journal.end:
                return range(cluster.columns.rows)
            for row in rows:
                changed[row] = None
        return changed
