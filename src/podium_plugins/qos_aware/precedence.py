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
