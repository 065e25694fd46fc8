"""Computes what QoS experiments report of a run: deficits, SLOs met, fairness, preemptions, waste and makespan.

availability   of a controller: its QoS; where slots are measured independently, that of the worst slot
deficit        max(0, SLO − availability)
Gini           of the availabilities within a class (one SLO): G = Σ (2i − n − 1)·x_i / (n·Σx), x ascending;
               over all classes the mean, weighted by their controllers; classes that were promised nothing are out
wasted         discarded run time and start overhead
overhead       the same, but that of replicas which must run together only their starts are lost: they stay up meanwhile
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from podium_plugins.qos.account import ControllerAccount
from podium_plugins.qos.formulas import INDEPENDENT, QosSums, availability, lost_to_preemption
from podium_plugins.qos.ledger import QosLedger

NEARLY: Final = 0.99


class QosReport(NamedTuple):
    """The figures of a run."""

    mean_deficit: float
    slo_met: float
    """The share of controllers that got at least their SLO."""
    slo_nearly_met: float
    """The same for 99 % of it: a pod that must start cannot have run all the time."""
    gini: float
    preemptions: int
    wasted_s: float
    preemption_overhead: float
    """What preemption costs: start overhead, and the work that Jobs lose, as a share of all time on nodes."""
    makespan_s: float


REPORT_COLUMNS: Final = QosReport._fields


class ControllerOutcome(NamedTuple):
    """What one controller was promised and got."""

    name: str
    approach: str
    slo: float
    availability: float
    sums: QosSums


def report_on(ledger: QosLedger, now: float, *, preemptions: int, makespan: float) -> QosReport:
    """The figures of all controllers that a ledger knows, by now."""
    return summarise_outcomes(outcomes(ledger.accounts.values(), now), preemptions=preemptions, makespan=makespan)


def outcomes(accounts: Iterable[ControllerAccount], now: float) -> list[ControllerOutcome]:
    return [
        ControllerOutcome(each.name, each.approach, each.slo, final_availability(each, now), each.final_sums(now))
        for each in accounts
    ]


def final_availability(account: ControllerAccount, now: float) -> float:
    """What a controller got; work in progress counts."""
    if account.approach != INDEPENDENT:
        return availability(account.final_sums(now))
    slots = list(account.closed)
    for each in account.open.values():
        waiting, binding, running = each.spans(now)
        slots[each.slot] = slots[each.slot].plus(QosSums(running, 0.0, waiting, binding, 1))
    return min((availability(each) for each in slots if each.incarnations), default=0.0)


def summarise_outcomes(found: Sequence[ControllerOutcome], *, preemptions: int, makespan: float) -> QosReport:
    number = len(found) or 1
    deficits = [max(0.0, each.slo - each.availability) for each in found]
    classes: dict[float, list[float]] = defaultdict(list)
    for each in found:
        if each.slo > 0:
            classes[each.slo].append(each.availability)
    promised = sum(map(len, classes.values())) or 1
    wasted = sum(each.sums.discarded + each.sums.binding for each in found)
    lost = sum(lost_to_preemption(each.sums, each.approach) for each in found)
    on_nodes = sum(each.sums.effective + each.sums.discarded + each.sums.binding for each in found)
    return QosReport(
        mean_deficit=sum(deficits) / number,
        slo_met=sum(each.availability >= each.slo for each in found) / number,
        slo_nearly_met=sum(each.availability >= NEARLY * each.slo for each in found) / number,
        gini=sum(len(values) * gini(values) for values in classes.values()) / promised,
        preemptions=preemptions,
        wasted_s=wasted,
        preemption_overhead=lost / on_nodes if on_nodes else 0.0,
        makespan_s=makespan,
    )


def least_mean_deficit(promises: Sequence[tuple[float, float]], room: float) -> float:
    """The mean deficit that no order of pods can be below: what is promised beyond the room there is, taken from those
    where giving up a share frees most. `promises` are SLOs and what running all the time would take, in the unit of
    `room` (slots, or cores, times seconds).

    >>> least_mean_deficit([(1.0, 100), (0.9, 100)], 180), least_mean_deficit([(1.0, 100), (0.9, 100)], 190)
    (0.05, 0.0)
    """
    lacking = sum(slo * whole for slo, whole in promises) - room
    deficit = 0.0
    for slo, whole in sorted(promises, key=lambda each: -each[1]):
        if lacking <= 0 or not whole:
            break
        freed = min(lacking, slo * whole)
        deficit, lacking = deficit + freed / whole, lacking - freed
    return deficit / (len(promises) or 1)


def gini(values: Iterable[float]) -> float:
    """
    >>> gini([1.0, 1.0]), gini([0.0, 1.0])
    (0.0, 0.5)
    """
    ascending = sorted(values)
    number, total = len(ascending), sum(ascending)
    if not total:
        return 0.0
    return sum((2 * i - number - 1) * x for i, x in enumerate(ascending, 1)) / (number * total)
