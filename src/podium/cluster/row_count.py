"""Counts per row, and knows when a count last changed: of pods that match a query, of pods that hold a term.

Terms ask for sums over the nodes of a domain. Where a label has few values these sums are kept, too: they move with
the count, and are taken again when labels change.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from podium.cluster.columns import Column
from podium.cluster.labels import LabelColumn, NodeLabels

FEW_VALUES = 256
"""Sums over a label with more values are taken when asked for: kept, they would fill as much memory as the rows do."""


class RowCount:
    """`version` moves whenever a count does, and no two counts that share their ticks ever share a version."""

    __slots__ = ("_column", "_labels_version", "_sums", "_ticks", "total", "version")

    def __init__(self, column: Column, ticks: Iterator[int]) -> None:
        self._column = column
        self._ticks = ticks
        self._sums: dict[LabelColumn, NDArray[np.int64]] = {}
        self._labels_version = -1
        self.total = 0
        self.version = next(ticks)

    @property
    def per_row(self) -> NDArray[np.int64]:
        return self._column.view

    def add(self, row: int, delta: int) -> None:
        self._column.view[row] += delta
        self.total += delta
        self.version = next(self._ticks)
        for label, sums in self._sums.items():
            number = label.ids[row]
            if 0 < number < len(sums):  # a label that changed since may have values the sums do not know
                sums[number] += delta

    def sums(self, labels: NodeLabels, key: str) -> NDArray[np.int64]:
        """Per number of a label's value the sum over the nodes that have it; 0 under 0. The caller's own."""
        if self._labels_version != labels.version:
            self._sums, self._labels_version = {}, labels.version
        label = labels.column(key)
        sums = self._sums.get(label)
        if sums is None:
            sums = label.sums(self.per_row)
            if len(sums) > FEW_VALUES:
                return sums
            self._sums[label] = sums
        return sums.copy()
