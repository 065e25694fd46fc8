"""Puts together what is said of each node about a pod's claims; what is said first of a node counts.

Also ranks a node by which alternatives its devices are: the earlier in the lists of requests, the better.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from podium.cluster import Mask, Nodes, Rows
from podium.framework import Cycle, Status, Verdict
from podium.kube import ResourceClaim
from podium.kube.devices import Allocation
from podium.placement.devices.allocator import CONTRADICTION
from podium.placement.devices.node_answers import CONTRADICTS, GIVES_NOTHING, NodeAnswers

NOT_ALLOCATED = Status.unresolvable("cannot allocate all claims")
CONTRADICTORY = Status.unresolvable(CONTRADICTION)


class ClaimVerdict:
    """A verdict in the making."""

    def __init__(self, nodes: int) -> None:
        self._codes = np.zeros(nodes, dtype=np.int64)
        self._statuses: list[Status] = []
        self._fails = False

    def refuse(self, status: Status, where: Mask) -> None:
        """Refuse nodes of which nothing was said before."""
        where = where & (self._codes == 0)
        if where.any():
            self._statuses.append(status)
            self._codes[where] = len(self._statuses)

    def refuse_one(self, status: Status, index: int) -> None:
        self._statuses.append(status)
        self._codes[index] = len(self._statuses)

    def take_answers(self, answers: NodeAnswers, rows: Rows, where: Mask) -> None:
        """Take over what nodes answered; a search that failed is an error, unless others refuse the node."""
        codes = answers.codes[rows]
        self.refuse(NOT_ALLOCATED, where & (codes == GIVES_NOTHING))
        self.refuse(CONTRADICTORY, where & (codes == CONTRADICTS))
        if answers.errors:
            for index, row in enumerate(rows.tolist()):
                problem = answers.errors.get(row)
                if problem is not None and where[index]:
                    self._fails = True
                    self.refuse_one(Status.error(problem), index)

    def verdict(self) -> Verdict | None:
        """None where all nodes pass."""
        if not self._statuses:
            return None
        return Verdict(self._codes, lambda code: self._statuses[code - 1], fails=self._fails)


def rows_to_search(cycle: Cycle, nodes: Nodes, chosen: Mask, rows: Rows) -> Rows:
    """Those of the rows that are among the chosen nodes and that no plugin has rejected, in visiting order."""
    if not chosen.all() or nodes.chosen is not None:
        of_row = np.zeros(cycle.cluster.columns.rows, dtype=np.bool_)
        of_row[nodes.rows[chosen]] = True
        rows = rows[of_row[rows]]
    return cycle.undecided_rows(rows)


MOST_ALTERNATIVES: Final = 8


def has_alternatives(claim: ResourceClaim) -> bool:
    return any(request.first_available for request in claim.spec.devices.requests)


def rank(claims: Iterable[ResourceClaim], found: Sequence[Allocation]) -> int:
    """The sum over all requests with alternatives; `found` is for the claims that have no devices yet, in order."""
    left = iter(found)
    total = 0
    for claim in claims:
        allocation = claim.status.allocation or next(left)
        taken = {result.request for result in allocation.devices.results}
        for request in claim.spec.devices.requests:
            for number, each in enumerate(request.first_available):
                if f"{request.name}/{each.name}" in taken:
                    total += MOST_ALTERNATIVES - number
    return total
