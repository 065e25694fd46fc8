"""Hands units to workers and takes their results, whoever the workers are.

As many units are under way as workers have room for. A unit whose worker was lost is begun again elsewhere. When
nothing is left to begin, a unit that takes much longer than the others is begun a second time, and whichever result
comes first counts: both are the same.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Sequence
from statistics import median
from typing import NamedTuple, Protocol

from podium_lab.units.unit import Unit, UnitError, seconds_now
from podium_lab.units.work import UnitOutcome, error_of

TRIES = 5
"""Workers that may be lost with one unit."""
SLOW = 2.0
"""A straggler has taken so many times the median."""
LEAST_SLOW = 5.0
"""Seconds below which nothing is a straggler."""


class Done(NamedTuple):
    """What workers say of one attempt."""

    number: int
    """The unit's number."""
    outcome: UnitOutcome | None
    """None: the worker was lost."""


class Workers(Protocol):
    """Run units; what they are given is stored when they say that it is done."""

    name: str

    @property
    def room(self) -> int:
        """How many more units may be handed over now."""

    def begin(self, number: int, unit: Unit) -> None: ...
    def wait(self, seconds: float) -> list[Done]: ...
    def drop(self, number: int) -> None:
        """End every attempt of a unit: it has a result, or none is wanted any more."""

    def close(self) -> None: ...


class Finished(NamedTuple):
    """A unit that has a result."""

    number: int
    payload: bytes | None
    """None where the worker has put it into the store."""


def dispatch(units: Sequence[Unit], workers: Workers) -> Generator[Finished, None, None]:
    """All units as they finish; raises the error of the first that cannot be run. What is under way then is ended."""
    waiting = deque(range(len(units)))
    began: dict[int, list[float]] = {}
    lost = [0] * len(units)
    took: deque[float] = deque(maxlen=1001)
    try:
        while waiting or began:
            while waiting and workers.room:
                number = waiting.popleft()
                began.setdefault(number, []).append(seconds_now())
                workers.begin(number, units[number])
            if not waiting and workers.room:
                _second_attempt(units, workers, began, took)
            for done in workers.wait(1.0):
                number = done.number
                if number not in began:  # the second of two attempts
                    continue
                if done.outcome is None:
                    lost[number] += 1
                    if lost[number] >= TRIES:
                        raise UnitError(
                            f"{units[number].label}: {workers.name} lost the worker {TRIES} times with this unit; "
                            "it may need more memory than there is"
                        )
                    began[number].pop()
                    if not began[number]:
                        del began[number]
                        waiting.appendleft(number)
                    continue
                if done.outcome.failure is not None:
                    raise error_of(done.outcome.failure, units[number])
                took.append(seconds_now() - began.pop(number)[0])
                workers.drop(number)
                yield Finished(number, done.outcome.payload)
    finally:
        for number in list(began):
            workers.drop(number)


def _second_attempt(
    units: Sequence[Unit], workers: Workers, began: dict[int, list[float]], took: Sequence[float]
) -> None:
    if not took:
        return
    limit = max(LEAST_SLOW, SLOW * median(took))
    now = seconds_now()
    slow = [number for number, times in began.items() if len(times) == 1 and now - times[0] > limit]
    for number in sorted(slow, key=lambda each: began[each][0])[: workers.room]:
        began[number].append(now)
        workers.begin(number, units[number])
