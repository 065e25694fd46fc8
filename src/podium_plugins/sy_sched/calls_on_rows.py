"""Counts, for each row, the system calls that its pods may use: all pods that have a node, whoever bound them.

With H the union of the sets of a node's n pods, and P that of the pod to place, the extraneous calls are

    |H \\ P| + Σ |(H ∪ P) \\ S(q)|  =  (n + 1)·|H ∪ P| − |P| − Σ |S(q)|

as each S(q) is a part of H. So of each row three things are kept: n, H and Σ|S(q)|.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster, PlacedPod

PodSets = Callable[[PlacedPod], int]


class RowCalls:
    """What is kept of one row: its pods' sets by uid, their union and the sum of their sizes."""

    __slots__ = ("sets", "sizes", "union")

    def __init__(self) -> None:
        self.sets: dict[str, int] = {}
        self.union = 0
        self.sizes = 0

    def extraneous(self, calls: int) -> int:
        """How many calls would be let through that a pod does not use, added up over the pods."""
        together = (self.union | calls).bit_count()
        return (len(self.sets) + 1) * together - calls.bit_count() - self.sizes

    def add(self, uid: str, calls: int) -> None:
        self.sets[uid] = calls
        self.union |= calls
        self.sizes += calls.bit_count()

    def remove(self, uid: str) -> None:
        gone = self.sets.pop(uid)
        self.sizes -= gone.bit_count()
        self.union = 0
        for calls in dict.fromkeys(self.sets.values()):
            self.union |= calls


class CallsOnRows:
    """The rows that have pods; a `PodAccount`."""

    def __init__(self, cluster: Cluster, set_of: PodSets) -> None:
        self._cluster = cluster
        self._set_of = set_of
        self._rows: dict[int, RowCalls] = {}
        cluster.follow_pods(self)

    def came(self, placed: PlacedPod) -> None:
        row = self._rows.get(placed.row)
        if row is None:
            row = self._rows[placed.row] = RowCalls()
        row.add(placed.pod.metadata.uid, self._set_of(placed))

    def went(self, placed: PlacedPod) -> None:
        row = self._rows[placed.row]
        row.remove(placed.pod.metadata.uid)
        if not row.sets:
            del self._rows[placed.row]

    def count_all(self) -> None:
        """Start over: pods may have other sets now."""
        self._rows.clear()
        for placed in self._cluster.pods.values():
            self.came(placed)

    def on(self, row: int, calls: int) -> int:
        """The extraneous calls of one row with a pod that may use these."""
        known = self._rows.get(row)
        return 0 if known is None else known.extraneous(calls)

    def over_rows(self, calls: int) -> NDArray[np.int64]:
        """The same for all rows."""
        scores = np.zeros(self._cluster.columns.rows, dtype=np.int64)
        if self._rows:
            scores[list(self._rows)] = [row.extraneous(calls) for row in self._rows.values()]
        return scores
