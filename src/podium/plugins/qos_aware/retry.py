"""Finds the next moment at which a pod that may evict no other could, by time alone.

Metrics move along straight lines while nothing else happens: the waiting pod's falls, a running pod's rises. The
moment is the first at which, for some running pod, all that a rule of `victims` asks for holds: the waiting pod is
urgent, the running one has run for long enough and is ahead by enough, and its preemption overhead has come down.

The lines of running pods are found once a second, for all pods that wait.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.placement.qos.account import Incarnation, TimeUse
from podium.placement.qos.formulas import INDEPENDENT
from podium.placement.qos.ledger import QosLedger
from podium.plugins.qos_aware.victims import EvictionLimits

MOST_LOOKED_AT: Final = 2000
"""Running pods that are looked at; where there are more, one of them ends soon enough."""

Numbers = NDArray[np.float64]


class RunningLines(NamedTuple):
    """What is known of running pods, at a moment: one number for each."""

    at: float
    uids: list[str]
    controllers: NDArray[np.int64]
    number_of: dict[str, int]
    """By key of a controller: what it is called in `controllers`."""
    slo: Numbers
    metric: Numbers
    rise: Numbers
    """By how much the metric grows in a second."""
    gap: Numbers
    """How far ahead it must be of a pod of its importance."""
    ready: Numbers
    """Seconds until it has run for the minimum time."""
    cheap: Numbers
    """Seconds until its preemption overhead is acceptable."""
    slack: Numbers
    """The metric from which on it has slack."""
    spared: Numbers
    """1 where a more important pod may not evict it either."""
    prey: Numbers
    """1 where it is worth nothing to its controller."""


class NextChances:
    """Finds the moments for the pods of one scheduler."""

    def __init__(self, ledger: QosLedger, limits: EvictionLimits) -> None:
        self._ledger = ledger
        self._limits = limits
        self._lines: RunningLines | None = None
        self.victims: list[str] = []
        """The pods that the one that was asked about last may evict now."""

    def wait(self, uid: str, now: float, needed: int = 1) -> float:
        """Seconds until the pod may evict so many others; 0: it may try now; ∞: no moment is known."""
        known = self._ledger.find(uid)
        if known is None:
            return math.inf
        account, margin = known[0], self._limits.margin
        metric = self._ledger.metric(uid, now)
        falls = self._ledger.metric(uid, now + 1.0) - metric
        if metric < margin:
            urgent = 0.0
        elif falls < 0 and math.isfinite(metric):
            urgent = (metric - margin) / -falls
        else:
            return math.inf
        lines = self._refreshed(now)
        waits = _waits(lines, known[1].promise.slo, metric, falls) - (now - lines.at)
        own = lines.number_of.get(account.key)
        if own is not None and account.approach != INDEPENDENT:
            waits[lines.controllers == own] = math.inf
        self.victims = []
        for i in np.flatnonzero(waits <= 0).tolist():
            victim = self._ledger.find(lines.uids[i])
            if victim is None or victim[1].leaving:
                waits[i] = lines.ready[i] = math.inf
            else:
                self.victims.append(lines.uids[i])
        if needed > len(waits):
            return math.inf
        return max(urgent, float(waits.min() if needed == 1 else np.partition(waits, needed - 1)[needed - 1]), 0.0)

    def _refreshed(self, now: float) -> RunningLines:
        lasts = min(1.0, self._limits.minimum)  # a pod that started since has not run for long enough
        if self._lines is None or not self._lines.at <= now < self._lines.at + lasts:
            self._lines = self._look(now)
        return self._lines

    def _look(self, now: float) -> RunningLines:
        ledger, limits = self._ledger, self._limits
        number_of: dict[str, int] = {}
        rows: list[tuple[float, ...]] = []
        controllers: list[int] = []
        uids: list[str] = []
        for account in ledger.accounts.values():
            for each in account.open.values():
                if each.state is TimeUse.RUNNING and not each.leaving and len(rows) < MOST_LOOKED_AT:
                    uids.append(each.uid)
                    controllers.append(number_of.setdefault(account.key, len(number_of)))
                    rows.append((*_line(ledger, each, limits, now), float(not account.contributing())))
        columns = np.array(rows, dtype=np.float64).reshape(-1, 9).T
        return RunningLines(now, uids, np.array(controllers, dtype=np.int64), number_of, *columns)


def _line(ledger: QosLedger, pod: Incarnation, limits: EvictionLimits, now: float) -> tuple[float, ...]:
    """slo, metric, rise, gap, ready, cheap, slack, spared."""
    uid, minimum = pod.uid, limits.minimum
    metric = ledger.metric(uid, now)
    rise = ledger.metric(uid, now + 1.0) - metric if math.isfinite(metric) else 0.0
    overhead, acceptable = ledger.overhead(uid, now)
    cheap = 0.0
    if not overhead <= acceptable:
        falls = overhead - ledger.overhead(uid, now + 1.0)[0]
        cheap = (overhead - acceptable) / falls if falls > 0 else math.inf
    gap, ready = ledger.lead(uid, now) + minimum, max(0.0, minimum - pod.spans(now)[2])
    slack = limits.margin + max(minimum, ledger.exchange(uid, now))
    return pod.promise.slo, metric, rise, gap, ready, cheap, slack, float(ledger.lost_too_much(uid, now))


def _waits(lines: RunningLines, importance: float, metric: float, falls: float) -> Numbers:
    """float64[running pods]: seconds until each may be evicted."""
    with np.errstate(divide="ignore", invalid="ignore"):
        slack = _until(lines.metric, lines.rise, lines.slack)
        ahead = _until(lines.metric - metric, lines.rise - falls, lines.gap)
        equal = lines.slo == importance
        by_slack = np.maximum(np.where(equal, np.minimum(slack, ahead), slack), lines.cheap)
        by_importance = np.where(lines.spared > 0, math.inf, 0.0)
        by_rules = np.where(importance > lines.slo, by_importance, by_slack)
        found: Numbers = np.maximum(lines.ready, np.where((lines.slo <= 0) | (lines.prey > 0), 0.0, by_rules))
    return np.nan_to_num(found, nan=math.inf, posinf=math.inf)


def _until(value: Numbers, rate: Numbers, wanted: Numbers | float) -> Numbers:
    """Seconds until a value that grows by `rate` a second has reached what is wanted; ∞: never."""
    left = wanted - value
    found: Numbers = np.where(left <= 0, 0.0, np.where(rate > 0, left / rate, math.inf))
    return found
