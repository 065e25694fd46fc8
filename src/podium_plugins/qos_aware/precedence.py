"""Decides which of two pods goes before the other.

    both have less slack than the safety margin, and differ in importance: the more important one
    otherwise: the one with the smaller metric

As a key: pods below the margin first, by importance and then by metric; the others by metric. Pods that are not
measured (kube-system) go before all others.

Jobs of one importance take turns task by task. Where there is not room for all, the neediest first would leave half of
them just below their SLO at any time. So one in debt, but by no more than its `reach`, goes after those that have slack
left; among such Jobs the one with the least debt goes first. A Job that lacks more goes before all of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import nsmallest
from itertools import islice
from typing import Any, Final

from podium_plugins.qos.account import Incarnation, TimeUse
from podium_plugins.qos.ledger import QosLedger

NEEDIEST, KEPT, LEFT_BEHIND = range(3)
"""Groups of urgent pods of one importance, in this order."""

PrecedenceKey = tuple[int, float, int, float]


class Precedence:
    """The order of pods at a moment."""

    def __init__(self, ledger: QosLedger, margin: float) -> None:
        self._ledger = ledger
        self._margin = margin

    def key(self, uid: str, now: float) -> PrecedenceKey:
        """The smaller key goes first."""
        metric = self._ledger.metric(uid, now)
        return precedence_key(metric, self._ledger.importance(uid), self._margin, self._ledger.reach(uid, metric, now))

    def before(self, uid: str, other: str, now: float) -> bool:
        return self.key(uid, now) < self.key(other, now)


def precedence_key(metric: float, importance: float, margin: float, reach: float = 0.0) -> PrecedenceKey:
    """
    >>> pods = {"A": (-2.4, 1.0), "B": (-100, 0.9), "C": (-500, 0.5), "D": (29.9, 0.5), "E": (40, 0.9), "F": (35, 0.5)}
    >>> "".join(sorted(pods, key=lambda name: precedence_key(*pods[name], 30.0)))
    'ABCDFE'
    >>> jobs = {"A": -10, "B": -80, "C": -120, "D": 20}
    >>> "".join(sorted(jobs, key=lambda name: precedence_key(jobs[name], 0.5, 30.0, reach=90)))
    'CDAB'
    """
    if metric >= margin:
        return 1, 0.0, NEEDIEST, metric
    if metric < -reach:
        return 0, -importance, NEEDIEST, metric
    return (0, -importance, KEPT, metric) if metric >= 0 else (0, -importance, LEFT_BEHIND, -metric)


FIRST: Final = 4
"""Pods that are tried at once for one that left: the first may be too large for its place."""
LONGEST_LINE: Final = 100
"""Pods whose order is kept until it is taken again."""
MANY: Final = 1000

WaitingKey = Callable[[Incarnation, float], Any]


class NextInLine:
    """The waiting pods that should go first when another pod leaves its node, in their order as far as it is needed.

    A pod that was refused backs off for up to ten seconds. If room comes up meanwhile, it would go to whichever pod is
    not backing off: most often to the successor of the pod that left, which had its share. So the first few by the
    queue's own order are tried at once. The order is taken again every second; with more than a thousand pods every
    two, and so on.
    """

    def __init__(self, ledger: QosLedger, key: WaitingKey) -> None:
        self._ledger = ledger
        self._key = key
        self._line: list[Incarnation] = []
        self._expires = 0.0

    def first(self, now: float) -> list[Incarnation]:
        """The pods that go first now."""
        if now >= self._expires or not any(map(self._waits, self._line)):
            waiting = list(self._waiting())
            self._line = nsmallest(LONGEST_LINE, waiting, key=lambda pod: self._key(pod, now))
            self._expires = now + 1 + len(waiting) // MANY
        return list(islice(filter(self._waits, self._line), FIRST))

    def _waiting(self) -> Iterator[Incarnation]:
        for account in self._ledger.accounts.values():
            if account.pending:
                yield from filter(self._waits, account.open.values())

    def _waits(self, pod: Incarnation) -> bool:
        return pod.state is TimeUse.WAITING and not pod.allocating and not pod.leaving and pod.uid in self._ledger.pods
