"""Reads the metrics log of the original scheduler: one line for each pod that left its slot, and what a run comes to.

    time, pod, controller, SLO, slot, approach, created, waiting, binding, running, succeeded, QoS, metric, W, B, E, D

Time and created are unix seconds; waiting to running, and the controller's sums W, B, E, D are milliseconds. What a
controller got in the end, its availability:

    average, concurrent   the QoS of its last line
    independent           the least of the QoS of the last lines of its slots
    aggregate             work in progress counts: E + running of the last line of each slot, where that is most
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from podium_plugins.qos.formulas import AGGREGATE, APPROACHES, INDEPENDENT, QosSums, availability
from podium_plugins.qos.report import ControllerOutcome, QosReport, summarise_outcomes

FIELDS: Final = 17
_MILLI = 1000.0


class MetricsLogError(ValueError):
    """A line that cannot be read."""


class SlotRelease(NamedTuple):
    """A line of the log; times in seconds."""

    at: float
    pod: str
    controller: str
    slo: float
    slot: int
    approach: str
    created: float
    waiting: float
    binding: float
    running: float
    succeeded: bool
    quality: float
    metric: float
    sums: QosSums


def read_log(lines: Iterable[str]) -> Iterator[SlotRelease]:
    """The lines that say something; raises MetricsLogError."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                yield parse_release(line)
            except ValueError as error:
                raise MetricsLogError(f"line {number}: {error}") from None


def parse_release(line: str) -> SlotRelease:
    """
    >>> release = parse_release("9,a_ns,web,0.5,0,average,1,2000,5,6000,false,0.75,+Inf,2000,5,6000,0")
    >>> release.sums.effective, release.metric
    (6.0, inf)
    """
    fields = [each.strip() for each in line.split(",")]
    if len(fields) != FIELDS:
        raise ValueError(f"{len(fields)} fields; {FIELDS} are expected")
    at, slo, created, waiting, binding, running, quality = (_number(fields, i) for i in (0, 3, 6, 7, 8, 9, 11))
    waited, bound, effective, discarded = (_number(fields, i) / _MILLI for i in (13, 14, 15, 16))
    if fields[5] not in APPROACHES:
        raise ValueError(f'field 6: "{fields[5][:40]}" is none of {", ".join(APPROACHES)}')
    if fields[10] not in ("true", "false"):
        raise ValueError(f'field 11: "{fields[10][:40]}" is neither true nor false')
    slot, metric = _number(fields, 4), _number(fields, 12, finite=False)
    if slot != int(slot) or slot < 0:
        raise ValueError(f'field 5: "{fields[4][:40]}" is no number of a slot')
    return SlotRelease(
        at,
        fields[1],
        fields[2],
        slo,
        int(slot),
        fields[5],
        created,
        waiting / _MILLI,
        binding / _MILLI,
        running / _MILLI,
        fields[10] == "true",
        quality,
        metric,
        QosSums(effective, discarded, waited, bound),
    )


def _number(fields: Sequence[str], index: int, *, finite: bool = True) -> float:
    try:
        found = float(fields[index])
    except ValueError:
        raise ValueError(f'field {index + 1}: "{fields[index][:40]}" is no number') from None
    if finite and not math.isfinite(found):
        raise ValueError(f'field {index + 1}: "{fields[index][:40]}" is no finite number')
    return found


def report_of_log(releases: Iterable[SlotRelease]) -> QosReport:
    """What experiments report of a run, from its log; pods that did not succeed count as preempted."""
    by_controller: dict[str, list[SlotRelease]] = defaultdict(list)
    for each in releases:
        by_controller[each.controller].append(each)
    found = [_outcome(name, lines) for name, lines in sorted(by_controller.items())]
    every = [each for lines in by_controller.values() for each in lines]
    makespan = max((each.at for each in every), default=0.0) - min((each.created for each in every), default=0.0)
    return summarise_outcomes(found, preemptions=sum(not each.succeeded for each in every), makespan=makespan)


def _outcome(name: str, lines: Sequence[SlotRelease]) -> ControllerOutcome:
    last = max(lines, key=lambda each: each.at)  # the first of those with the same time
    slots: dict[int, SlotRelease] = {}
    for each in sorted(lines, key=lambda each: each.at):
        slots[each.slot] = each
    quality, sums = last.quality, last.sums
    if last.approach == INDEPENDENT:
        quality = min(each.quality for each in slots.values())
    elif last.approach == AGGREGATE:
        sums = max((_with_work_in_progress(each) for each in slots.values()), key=lambda each: each.effective)
        quality = min(1.0, availability(sums))
    return ControllerOutcome(name, last.approach, last.slo, quality, sums)


def _with_work_in_progress(release: SlotRelease) -> QosSums:
    sums = release.sums
    return sums._replace(effective=sums.effective + release.running, discarded=sums.discarded - release.running)
