"""Reads what a pod's annotations promise: its controller, SLO, measuring approach and acceptable preemption overhead.

    annotation                     absent                          cannot be read, or out of range
    controller                     the owner, else the pod itself  –
    slo                            0.80                            0.80, reported (a number from 0 to 1 is wanted)
    qosMeasuring                   by the owner's kind             by the owner's kind, reported
    acceptablePreemptionOverhead   the plugin's argument           the plugin's argument, reported

By the owner's kind: none → independent, Job → aggregate, any other → average.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Final, NamedTuple

from podium.kube import Pod
from podium_plugins.qos.formulas import AGGREGATE, APPROACHES, AVERAGE, INDEPENDENT

CONTROLLER: Final = "controller"
SLO: Final = "slo"
MEASURING: Final = "qosMeasuring"
OVERHEAD: Final = "acceptablePreemptionOverhead"
DEFAULT_SLO: Final = 0.8


class QosPromise(NamedTuple):
    """What is promised to a pod; `problems` says what could not be read."""

    key: str
    """Equal for the pods of one controller."""
    name: str
    lasting: bool
    """Whether further pods of this controller may come after this one."""
    slo: float
    approach: str
    overhead: float | None
    problems: tuple[str, ...] = ()


def read_promise(pod: Pod) -> QosPromise:
    """
    >>> from podium.kube import ObjectMeta
    >>> read_promise(Pod(metadata=ObjectMeta(name="a", uid="u", annotations={"slo": "seven"}))).problems
    ('annotation slo: "seven" is no number from 0 to 1; 0.8 counts',)
    """
    metadata = pod.metadata
    written, owner = metadata.annotations, metadata.controller if metadata.owner_references else None
    name, lasting = written.get(CONTROLLER, "") if written else "", True
    key = name
    if not key:
        if owner is not None:
            key, name = owner.uid or f"{pod.namespace}/{owner.name}", owner.name
        else:
            key, name, lasting = metadata.uid or pod.key, metadata.name, False
    approach = INDEPENDENT if owner is None else AGGREGATE if owner.kind == "Job" else AVERAGE
    if not written:
        return QosPromise(key, name, lasting, DEFAULT_SLO, approach, None)
    read = _promise if lasting else _promise.__wrapped__
    return read(key, name, lasting, approach, written.get(SLO), written.get(MEASURING), written.get(OVERHEAD))


@lru_cache(maxsize=4096)
def _promise(
    key: str, name: str, lasting: bool, approach: str, slo_text: str | None, measuring: str | None, share: str | None
) -> QosPromise:
    """The promise that annotations make: that of further pods of a controller is the same one."""
    problems: list[str] = []
    slo, overhead = DEFAULT_SLO, None
    if slo_text is not None:
        found = read_slo(slo_text)
        if found is None:
            problems.append(f'annotation {SLO}: "{slo_text[:40]}" is no number from 0 to 1; {DEFAULT_SLO} counts')
        else:
            slo = found
    if measuring is not None:
        if measuring in APPROACHES:
            approach = measuring
        else:
            wrong = f'"{measuring[:40]}" is none of {", ".join(APPROACHES)}; {approach} counts'
            problems.append(f"annotation {MEASURING}: {wrong}")
    if share is not None:
        overhead = _number(share)
        if overhead is None:
            wrong = f'"{share[:40]}" is no number of 0 or more; the argument counts'
            problems.append(f"annotation {OVERHEAD}: {wrong}")
    return QosPromise(key, name, lasting, slo, approach, overhead, tuple(problems))


def read_slo(text: str) -> float | None:
    """
    >>> read_slo("0.5"), read_slo("7"), read_slo("NaN")
    (0.5, None, None)
    """
    number = _number(text)
    return number if number is not None and number <= 1 else None


def _number(text: str) -> float | None:
    """A finite number of 0 or more; None where the text is none."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 and "_" not in text else None
