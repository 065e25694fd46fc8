"""Defines a filter's answer about many nodes at once: a number per node, and what each number means.

0 lets the node pass. Any other number stands for a status; statuses are looked up only when the reason is asked
for, so that rejecting five thousand nodes costs one array and no strings.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Mask
from podium.framework.status import Status

Codes = NDArray[np.int64]


class Verdict:
    """`codes`: int64[nodes], 0 = passes; `status_of(code)` explains the others.

    `fails` says that some of the statuses are errors: such a node is not refused, it fails the pod's cycle.
    """

    __slots__ = ("codes", "fails", "status_of")

    def __init__(self, codes: Codes, status_of: Callable[[int], Status], *, fails: bool = False) -> None:
        self.codes = codes
        self.status_of = status_of
        self.fails = fails

    @staticmethod
    def reject(where: Mask, status: Status) -> Verdict:
        """Reject some nodes, all for one reason."""
        return Verdict(where.astype(np.int64), lambda _code: status)

    @staticmethod
    def first_of(*rejections: tuple[Mask, Status]) -> Verdict:
        """Reject nodes for the first of several reasons that applies."""
        codes = np.zeros(len(rejections[0][0]), dtype=np.int64)
        for number, (where, _status) in reversed(list(enumerate(rejections, start=1))):
            np.putmask(codes, where, number)
        return Verdict(codes, lambda code: rejections[code - 1][1])
