"""Decides which of two pods goes before the other.

    both have less slack than the safety margin, and differ in importance: the more important one
    otherwise: the one with the smaller metric

As a key: pods below the margin first, by importance and then by metric; the others by metric. Pods that are not
measured (kube-system) go before all others.
"""

from __future__ import annotations

from podium.placement.qos.ledger import QosLedger

PrecedenceKey = tuple[int, float, float]


class Precedence:
    """The order of pods at a moment."""

    def __init__(self, ledger: QosLedger, margin: float) -> None:
        self._ledger = ledger
        self._margin = margin

    def key(self, uid: str, now: float) -> PrecedenceKey:
        """The smaller key goes first."""
        return precedence_key(self._ledger.metric(uid, now), self._ledger.importance(uid), self._margin)

    def before(self, uid: str, other: str, now: float) -> bool:
        return self.key(uid, now) < self.key(other, now)


def precedence_key(metric: float, importance: float, margin: float) -> PrecedenceKey:
    """
    >>> pods = {"A": (-2.4, 1.0), "B": (-100, 0.9), "C": (-500, 0.5), "D": (29.9, 0.5), "E": (40, 0.9), "F": (35, 0.5)}
    >>> "".join(sorted(pods, key=lambda name: precedence_key(*pods[name], 30.0)))
    'ABCDFE'
    """
    return (0, -importance, metric) if metric < margin else (1, 0.0, metric)
