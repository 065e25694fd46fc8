"""Reads which rows changed, and holds them until the plugins have been asked about them.

Also holds what is known of every row about pods of one signature, where each row stands for itself.

A row has a number: of the status with which a filter refuses it (0: it passes), or a score. The answer about all rows
at once comes with its own numbering; statuses that are found later, about changed rows, are numbered from −1 down, so
that neither numbering has to be rewritten for the other.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster, NodeInfo, Nodes, RowCursor, Rows
from podium.framework.status import Status

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


Numbers = NDArray[np.int64]
StatusOf = Callable[[int], Status]
"""What a number stands for."""


def no_status(number: int) -> Status:
    """For numbers that are scores."""
    raise AssertionError(f"score {number} stands for no status")


class RowAnswers:
    """`numbers`: int64[rows], None while every row has 0; `status_of` explains those that stand for a status."""

    __slots__ = ("_number_of", "_status_of", "_statuses", "numbers")

    def __init__(self) -> None:
        self.replace(None, no_status)

    def replace(self, numbers: Numbers | None, status_of: StatusOf) -> None:
        """Take over an answer about all rows. The numbers are the caller's no longer."""
        self.numbers = numbers
        self._status_of = status_of
        self._statuses: list[Status] = []
        self._number_of: dict[Status, int] = {}

    def set_status(self, row: int, status: Status | None, rows: int) -> int:
        """Take over the answer about one of `rows` rows; +1 when it is refused now and was not, −1 the other way."""
        numbers = self.numbers
        if numbers is None:
            if status is None:
                return 0
            numbers = self.numbers = np.zeros(rows, dtype=np.int64)
        before = bool(numbers[row])
        numbers[row] = 0 if status is None else self._number(status)
        return (status is not None) - before

    def set_rows(self, rows: Rows, numbers: Numbers, status_of: StatusOf) -> None:
        """Take over an answer about some rows; `numbers` is in their order."""
        assert self.numbers is not None
        if status_of is not no_status:
            refused = np.flatnonzero(numbers)
            numbers[refused] = [self._number(status_of(number)) for number in numbers[refused].tolist()]
        self.numbers[rows] = numbers

    def _number(self, status: Status) -> int:
        number = self._number_of.get(status)
        if number is None:
            self._statuses.append(status)
            number = self._number_of[status] = -len(self._statuses)
        return number

    def pick(self, rows: Rows) -> Numbers:
        """The numbers of some rows, in their order."""
        return np.zeros(len(rows), dtype=np.int64) if self.numbers is None else self.numbers[rows]

    def status_of(self, number: int) -> Status:
        return self._statuses[-number - 1] if number < 0 else self._status_of(number)
