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


def walk_key(count: int, bits: int) -> NDArray[np.int64]:
    """A number below 2^bits for each of `count` positions: the larger, the earlier a heap gives up the position."""
    return (1 << bits) - 1 - _ranks(count)


def first_in_order(scores: NDArray[np.int64], rows: NDArray[np.intp], order: NDArray[np.intp]) -> int:
    """Of the rows with the highest score the one that comes first in the order of nodes.

    >>> first_in_order(np.array([2, 1, 2]), np.array([7, 8, 9]), np.array([8, 9, 7]))
    9
    """
    best = rows[scores == scores.max()]
    return int(order[np.isin(order, best)][0])


def order_key(count: int, bits: int) -> NDArray[np.int64]:
    """A number below 2^bits for each of `count` positions: the larger, the earlier in the order of nodes."""
    return (1 << bits) - 1 - np.arange(count, dtype=np.int64)


_table: NDArray[np.int64] = np.zeros(0, dtype=np.int64)


def _ranks(count: int) -> NDArray[np.int64]:
    """The rank of each of the first positions, from a table that only grows."""
    global _table  # noqa: PLW0603
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
