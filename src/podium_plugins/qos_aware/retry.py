"""Finds the next moment at which a pod that may evict no other could, by time alone.

Metrics move along straight lines while nothing else happens: the waiting pod's falls, a running pod's rises. The
moment is the first at which, for some running pod, all that a rule of `victims` asks for holds: the waiting pod is
urgent, the running one has run for long enough and is ahead by enough, and its preemption overhead has come down.

The lines of running pods are found once a second, for all pods that wait; where many run, for some of them in turn.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium_plugins.qos.account import ControllerAccount, Incarnation, TimeUse
from podium_plugins.qos.formulas import INDEPENDENT
from podium_plugins.qos.ledger import QosLedger
from podium_plugins.qos_aware.victims import EvictionLimits

MOST_LOOKED_AT: Final = 2000
"""Running pods that are looked at together; where there are more, others are in the next second."""

Numbers = NDArray[np.float64]
NO_WAITS: Final[Numbers] = np.zeros(0)


class RunningLines(NamedTuple):
    """What is known of running pods, at a moment: one number for each."""

    at: float
    rest: float
    """Seconds after which the pods that are not among them will have been looked at; ∞ where all are."""
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
    task: Numbers
    """1 where its work is lost with it."""


class WaitingLine(NamedTuple):
    """How a waiting pod stands, at the same moment."""

    importance: float
    metric: float
    falls: float
    """By how much the metric changes in a second."""
    reach: float
    """The debt beyond which it goes first."""


class NextChances:
    """Finds the moments for the pods of one scheduler."""

    def __init__(self, ledger: QosLedger, limits: EvictionLimits) -> None:
        self._ledger = ledger
        self._limits = limits
        self._lines: RunningLines | None = None
        self._turn = 0
        """Where the next look begins, where not all running pods are looked at together."""
        self._waits: dict[str, tuple[int, float, float, Numbers]] = {}
        """By controller, for pods that are asked about at one moment: its version and SLO, and what was found."""
        self._found_at = -math.inf
        self.victims: list[str] = []
        """The pods that the one that was asked about last may evict now."""

    def wait(self, uid: str, now: float, needed: int = 1) -> float:
        """Seconds until the pod may evict so many others; 0: it may try now; ∞: no moment is known."""
        known = self._ledger.find(uid)
        if known is None:
            return math.inf
        urgent, waits = self._found(*known, now)
        lines, self.victims = self._lines, []
        if urgent == math.inf or lines is None:
            return math.inf
        for i in np.flatnonzero(waits <= 0).tolist():
            victim = self._ledger.find(lines.uids[i])
            if victim is None or victim[1].leaving:
                waits[i] = lines.ready[i] = math.inf
            else:
                self.victims.append(lines.uids[i])
        first = math.inf
        if needed <= len(waits):
            first = float(waits.min() if needed == 1 else np.partition(waits, needed - 1)[needed - 1])
        return max(urgent, min(first, lines.rest), 0.0)

    def _found(self, account: ControllerAccount, pod: Incarnation, now: float) -> tuple[float, Numbers]:
        """Seconds until the pod is urgent, and float64[running pods]: until each may be evicted. Waiting pods of one
        controller share that, unless each is measured by itself."""
        slo, shared = pod.promise.slo, account.approach != INDEPENDENT
        if now != self._found_at:
            self._found_at = now
            self._waits.clear()
        if shared:
            version, found_slo, urgent, waits = self._waits.get(account.key, (-1, slo, math.inf, NO_WAITS))
            if version == account.version and found_slo == slo:
                return urgent, waits
        metric = self._ledger.metric(pod.uid, now)
        falls = self._ledger.metric(pod.uid, now + 1.0) - metric
        urgent = 0.0 if metric < self._limits.margin else math.inf
        if urgent and falls < 0 and math.isfinite(metric):
            urgent = (metric - self._limits.margin) / -falls
        waits = NO_WAITS
        if urgent < math.inf:
            lines = self._refreshed(now)
            line = WaitingLine(slo, metric, falls, self._ledger.reach(pod.uid, metric, now))
            waits = _waits(lines, line, self._limits.margin) - (now - lines.at)
            own = lines.number_of.get(account.key)
            if shared and own is not None:
                waits[lines.controllers == own] = math.inf
        if shared:
            self._waits[account.key] = (account.version, slo, urgent, waits)
        return urgent, waits

    def _refreshed(self, now: float) -> RunningLines:
        lasts = min(1.0, self._limits.minimum)  # a pod that started since has not run for long enough
        if self._lines is None or not self._lines.at <= now < self._lines.at + lasts:
            self._lines = self._look(now)
        return self._lines

    def _look(self, now: float) -> RunningLines:
        ledger, limits = self._ledger, self._limits
        running = [
            (account, each)
            for account in ledger.accounts.values()
            for each in account.open.values()
            if each.state is TimeUse.RUNNING and not each.leaving
        ]
        rest = math.inf
        if len(running) > MOST_LOOKED_AT:
            rest = len(running) / MOST_LOOKED_AT
            begin = self._turn % len(running)
            self._turn = begin + MOST_LOOKED_AT
            running = [*running[begin:], *running[:begin]][:MOST_LOOKED_AT]
        number_of: dict[str, int] = {}
        controllers = [number_of.setdefault(account.key, len(number_of)) for account, _ in running]
        rows = [
            (*_line(ledger, each, limits, now), float(not account.contributing()), float(ledger.loses_work(each.uid)))
            for account, each in running
        ]
        columns = np.array(rows, dtype=np.float64).reshape(-1, 10).T
        uids = [each.uid for _, each in running]
        return RunningLines(now, rest, uids, np.array(controllers, dtype=np.int64), number_of, *columns)


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


def _waits(lines: RunningLines, pod: WaitingLine, margin: float) -> Numbers:
    """float64[running pods]: seconds until each may be evicted for a pod."""
    importance, metric, falls, reach = pod
    with np.errstate(divide="ignore", invalid="ignore"):
        slack = _until(lines.metric, lines.rise, lines.slack)
        ahead = _until(lines.metric - metric, lines.rise - falls, lines.gap)
        if metric >= -reach:  # until then it goes behind those that are not ahead by the margin
            first = np.minimum(_until_below(metric, falls, -reach), _until(lines.metric, lines.rise, margin))
            ahead = np.maximum(ahead, first)
        equal = lines.slo == importance
        by_slack = np.maximum(np.where(equal, np.minimum(slack, ahead), slack), lines.cheap)
        by_importance = np.where(lines.spared > 0, math.inf, 0.0)
        by_rules = np.where(importance > lines.slo, by_importance, by_slack)
        by_rules = np.where(lines.task > 0, np.maximum(by_rules, _until_below(metric, falls, 0.0)), by_rules)
        found: Numbers = np.maximum(lines.ready, np.where((lines.slo <= 0) | (lines.prey > 0), 0.0, by_rules))
    found[np.isnan(found)] = math.inf
    return found


def _until_below(value: float, rate: float, bound: float) -> float:
    """Seconds until a value that falls by `-rate` a second is below a bound; ∞: never."""
    if value < bound:
        return 0.0
    return (value - bound) / -rate if rate < 0 and math.isfinite(value) else math.inf


def _until(value: Numbers, rate: Numbers, wanted: Numbers | float) -> Numbers:
    """Seconds until a value that grows by `rate` a second has reached what is wanted; ∞: never."""
    left = wanted - value
    found: Numbers = np.where(left <= 0, 0.0, np.where(rate > 0, left / rate, math.inf))
    return found
