"""Finds the waiting pods that should go first when another pod leaves its node.

A pod that was refused backs off for up to ten seconds. If room comes up meanwhile, it would go to whichever pod is not
backing off: most often to the successor of the pod that left, which had its share. So the first few by the queue's own
order are tried at once. The order is taken again every second; with more than a thousand pods every two, and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import nsmallest
from itertools import islice
from typing import Any, Final

from podium_plugins.qos.account import Incarnation, TimeUse
from podium_plugins.qos.ledger import QosLedger

FIRST: Final = 4
"""Pods that are tried at once for one that left: the first may be too large for its place."""
LONGEST_LINE: Final = 100
"""Pods whose order is kept until it is taken again."""
MANY: Final = 1000

WaitingKey = Callable[[Incarnation, float], Any]


class NextInLine:
    """The waiting pods in the order they should go, as far as it is needed."""

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
