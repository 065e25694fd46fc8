"""Which of several equally good nodes is taken.

kube-scheduler builds a binary heap over the scores, in the order the nodes were visited, and takes its top. With equal
scores that is the first highest one met when the heap's tree is walked from the root, left before right. The rank of a
position in that walk does not depend on how many nodes there are: written from the left, its path bits sort like text.

    >>> top_of_heap(np.array([1, 2, 2])), top_of_heap(np.array([1, 1, 2, 2]))
    (1, 3)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def top_of_heap(scores: NDArray[np.int64]) -> int:
    """The position a max-heap built over `scores` would give up first."""
    best = int(scores.argmax())
    ties = np.flatnonzero(scores == scores[best])
    if len(ties) == 1:
        return best
    return int(ties[_walk_rank(ties).argmin()])


def _walk_rank(positions: NDArray[np.intp]) -> NDArray[np.int64]:
    """Sorts positions of an implicit binary tree as a walk (node, left subtree, right subtree) meets them."""
    number = positions.astype(np.int64) + 1
    depth = np.frexp(number.astype(np.float64))[1].astype(np.int64)
    return ((number << (40 - depth)) << 6) | depth
