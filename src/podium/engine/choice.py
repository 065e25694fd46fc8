"""Chooses among equally good nodes.

kube-scheduler builds a binary heap over the scores, in the order the nodes were visited, and takes its top. With equal
scores that is the first highest one met when the heap's tree is walked from the root, left before right. The rank of a
position in that walk does not depend on how many nodes there are: written from the left, its path bits sort like text.

Where a score plugin asks for it (`first_of_equals`), the first node in the cluster's order is taken instead, wherever
the search started: then equal nodes are filled one after the other.

    >>> top_of_heap(np.array([1, 2, 2])), top_of_heap(np.array([1, 1, 2, 2]))
    (1, 3)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

DEEPEST = 20


def top_of_heap(scores: NDArray[np.int64]) -> int:
    """The position a max-heap built over `scores` would give up first."""
    best = int(scores.argmax())
    ties = np.flatnonzero(scores == scores[best])
    if len(ties) == 1:
        return best
    return int(ties[_ranks(len(scores))[ties].argmin()])


class ScoreHeap:
    """A max-heap over the scores of rows, mostly after its top was taken: the others come in the order of
    kube-scheduler's."""

    def __init__(self, rows: NDArray[np.intp], scores: NDArray[np.int64], *, top_is_taken: bool = True) -> None:
        self._rows = rows.copy()  # the order of nodes may be patched
        self._scores = scores
        self._top_is_taken = top_is_taken
        self._heap: list[tuple[int, int]] | None = None  # made when it is needed, which is rare

    def __len__(self) -> int:
        return len(self._rows) - self._top_is_taken if self._heap is None else len(self._heap)

    @property
    def rows(self) -> list[int]:
        """The rows that are left, as they lie in the heap."""
        return [row for _score, row in self._made()]

    def pop(self) -> int:
        """The row to take next.

        >>> heap = ScoreHeap(np.arange(4), np.array([7, 7, 7, 7]))
        >>> [heap.pop() for _ in range(len(heap))]
        [3, 2, 1]
        """
        return _pop(self._made())

    def _made(self) -> list[tuple[int, int]]:
        if self._heap is None:
            self._heap = list(zip(self._scores.tolist(), self._rows.tolist(), strict=True))
            for position in range(len(self._heap) // 2 - 1, -1, -1):
                _sink(self._heap, position, len(self._heap))
            if self._top_is_taken:
                _pop(self._heap)
        return self._heap


def _pop(heap: list[tuple[int, int]]) -> int:
    heap[0], heap[-1] = heap[-1], heap[0]
    _sink(heap, 0, len(heap) - 1)
    return heap.pop()[1]


def _sink(heap: list[tuple[int, int]], position: int, size: int) -> None:
    """Let an entry sink below children with a higher score; of equal ones the left rises."""
    while (child := 2 * position + 1) < size:
        if child + 1 < size and heap[child + 1][0] > heap[child][0]:
            child += 1
        if heap[child][0] <= heap[position][0]:
            return
        heap[position], heap[child] = heap[child], heap[position]
        position = child


def walk_key(count: int, bits: int) -> NDArray[np.int64]:
    """A number below 2^bits for each of `count` positions: the larger, the earlier a heap gives up the position."""
    return (1 << bits) - 1 - _ranks(count)


def first_in_order(scores: NDArray[np.int64], rows: NDArray[np.intp], order: NDArray[np.intp]) -> int:
    """Of the rows with the highest score the one that comes first in the order of nodes.

    >>> first_in_order(np.array([2, 1, 2]), np.array([7, 8, 9]), np.array([8, 9, 7]))
    9
    """
    best = rows[scores == scores.max()]
    if len(best) == 1:
        return int(best[0])
    among_best = np.zeros(int(best.max()) + 1, dtype=np.bool_)  # of rows
    among_best[best] = True
    early = order[order < len(among_best)]
    return int(early[among_best[early].argmax()])


def order_key(count: int, bits: int) -> NDArray[np.int64]:
    """A number below 2^bits for each of `count` positions: the larger, the earlier in the order of nodes."""
    return (1 << bits) - 1 - np.arange(count, dtype=np.int64)


_table: NDArray[np.int64] = np.zeros(0, dtype=np.int64)


def _ranks(count: int) -> NDArray[np.int64]:
    """The rank of each of the first positions, from a table that only grows."""
    global _table  # noqa: PLW0603  (one table for the process)
    if count > len(_table):
        _table = _walk_rank(np.arange(max(count, 2 * len(_table))))
    return _table[:count]


def _walk_rank(positions: NDArray[np.intp]) -> NDArray[np.int64]:
    """Sorts positions of an implicit binary tree as a walk (node, left subtree, right subtree) meets them.

    Below 2^26 for the first million positions.
    """
    number = positions.astype(np.int64) + 1
    depth = np.frexp(number.astype(np.float64))[1].astype(np.int64)
    return ((number << (DEEPEST - depth)) << 5) | depth
