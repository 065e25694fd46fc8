"""Computes the QoS of a controller, its distance from its SLO in seconds, and what preemption has cost it.

    QoS        A = E / (E + D + W + B)
    metric     positive: seconds until the SLO is violated; negative: run time that is missing
    overhead   (B + D) / (B + E + D) for aggregate, B / (B + E + D) for the others

E, D: effective and discarded run time; W, B: waiting and binding; all in seconds and summed over the incarnations of
the controller's pods. Two rule sets: `compat` is the original's, number by number; the other one differs where the
original is wrong:

    an SLO of 0 or less promises nothing     its metric is always +∞
    start overhead                           the mean over pods that were bound, with the prior as one of them
    debt per replica                         a controller's debt is divided by its replicas, as its slack is
    exactly at the SLO                       is slack, not 0
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

INDEPENDENT: Final = "independent"
AVERAGE: Final = "average"
CONCURRENT: Final = "concurrent"
AGGREGATE: Final = "aggregate"
APPROACHES: Final = (INDEPENDENT, AVERAGE, CONCURRENT, AGGREGATE)

START_OVERHEAD: Final = 2.4
"""Seconds that a start is taken to cost while nothing was measured."""


class QosSums(NamedTuple):
    """Sums over incarnations, in seconds, and how many there are."""

    effective: float = 0.0
    discarded: float = 0.0
    waiting: float = 0.0
    binding: float = 0.0
    incarnations: int = 0
    bound: int = 0
    """How many of them were ever bound."""

    @property
    def total(self) -> float:
        return self.effective + self.discarded + self.waiting + self.binding

    def plus(self, other: QosSums) -> QosSums:
        return QosSums(
            self.effective + other.effective,
            self.discarded + other.discarded,
            self.waiting + other.waiting,
            self.binding + other.binding,
            self.incarnations + other.incarnations,
            self.bound + other.bound,
        )


class QosQuestion(NamedTuple):
    """On whose behalf a metric is asked for: the pod's SLO, and how its controller stands."""

    approach: str
    slo: float
    running: int
    """Slots whose pod runs."""
    pending: int
    replicas: int
    pod_runs: bool
    """Whether the pod that is asked about is among the running ones by its phase."""


def availability(sums: QosSums) -> float:
    """
    >>> availability(QosSums(effective=90.0, waiting=10.0))
    0.9
    """
    total = sums.total
    return sums.effective / total if total else 0.0


def start_overhead(sums: QosSums, *, compat: bool = False) -> float:
    """Seconds that one more start is expected to cost."""
    if compat:
        return sums.binding / sums.incarnations if sums.binding and sums.incarnations else START_OVERHEAD
    return (START_OVERHEAD + sums.binding) / (1 + sums.bound)


def qos_metric(sums: QosSums, asked: QosQuestion, *, compat: bool = False) -> float:
    """Seconds of slack (positive) or of debt (negative)."""
    slo = asked.slo
    if not compat and slo <= 0:
        return math.inf
    overhead = start_overhead(sums, compat=compat)
    if asked.approach == INDEPENDENT:
        return _over(sums.effective, slo) - (sums.effective + sums.waiting + sums.binding) - overhead
    if asked.approach == CONCURRENT:
        return _concurrent(sums, asked, overhead, compat=compat)
    if asked.approach in (AVERAGE, AGGREGATE):
        return _average(sums, asked, overhead, compat=compat)
    return math.nan


def _average(sums: QosSums, asked: QosQuestion, overhead: float, *, compat: bool) -> float:
    slo, total = asked.slo, sums.total
    quality = sums.effective / total if total else 0.0
    pods = asked.running + asked.pending
    if compat and quality == slo:
        return 0.0
    if quality < slo:
        debt = _over(sums.effective, slo) - total
        return (debt if compat else debt / max(1, pods)) - overhead
    staying = asked.running - 1 if asked.pod_runs else asked.running
    if _over(staying, pods) >= slo:
        return math.inf
    return _over(sums.effective - slo * total, pods * slo - staying) - overhead


def _concurrent(sums: QosSums, asked: QosQuestion, overhead: float, *, compat: bool) -> float:
    slo, total, replicas = asked.slo, sums.total, asked.replicas
    if total and sums.effective / total < slo:
        debt = _over(sums.effective, slo) - total
        return (debt if compat else debt / max(1, replicas)) - overhead
    slack = _over(sums.effective, replicas * slo) - _over(total, replicas)
    return slack if compat else slack - overhead


def preemption_overhead(sums: QosSums, approach: str) -> float:
    """The share of its time on nodes that a controller lost to preemption; NaN where it had none."""
    return _over(lost_to_preemption(sums, approach), sums.binding + sums.effective + sums.discarded)


def lost_to_preemption(sums: QosSums, approach: str) -> float:
    """Seconds on nodes that starts took, and work that is lost."""
    return sums.binding + (sums.discarded if approach == AGGREGATE else 0.0)


def acceptable_overhead(slo: float, limit: float) -> float:
    """The ceiling of a pod's preemption overhead: what its SLO leaves, or less where it says so.

    >>> acceptable_overhead(0.75, 0.5), acceptable_overhead(0.75, 0.05)
    (0.25, 0.05)
    """
    return min(1 - slo, limit)


def _over(number: float, divisor: float) -> float:
    """Division as IEEE 754 has it."""
    if divisor:
        return number / divisor
    return math.nan if number == 0 or math.isnan(number) else math.copysign(math.inf, number)
