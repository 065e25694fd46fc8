"""Runs units: skips what a store has, does the rest on an engine, and names what was damaged.

    plan → verify what is there → run what is missing → every unit has a result in the store

Engines differ in where they run a unit, and in nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import NamedTuple

import msgspec

from podium_lab.units.dispatch import Workers, dispatch
from podium_lab.units.errors import UnitError
from podium_lab.units.processes import LocalWorkers
from podium_lab.units.store import Plan, Store, Verify
from podium_lab.units.unit import Unit

ENGINES = ("local", "kubernetes", "ray")


class Part(NamedTuple):
    """Which of the units are done by this command: every `of`-th, from the `number`-th on."""

    number: int = 1
    of: int = 1

    @property
    def whole(self) -> bool:
        return self.of == 1

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


class JobOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How Jobs of Kubernetes are made; see `jobs.py`."""

    image: str = ""
    claim: str = ""
    secret: str = ""
    namespace: str = ""
    local_queue: str = ""
    kubeconfig: str | None = None
    context: str | None = None


class EngineOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Where units are run."""

    engine: str = "local"
    workers: int = 1
    part: Part = Part()
    jobs: JobOptions = JobOptions()


class Tally(msgspec.Struct):
    """What a command has done so far."""

    units: int
    """Of this part."""
    skipped: int = 0
    """Their results were there."""
    done: int = 0
    """Run now."""
    damaged: int = 0
    """Their results were there, and wrong."""

    @property
    def left(self) -> int:
        return self.units - self.skipped - self.done


Said = Callable[[str], None]
Told = Callable[[Tally, Unit | None], None]
"""Called when it begins, and with each unit that is finished."""
InProcess = Callable[[Unit], bytes]


def read_part(text: str | None) -> Part:
    """
    >>> read_part("2/8")
    Part(number=2, of=8)
    """
    if text is None:
        return Part()
    first, _, second = text.partition("/")
    if not (first.isdecimal() and second.isdecimal() and 1 <= int(first) <= int(second)):
        raise UnitError(f"--units {text}: is no part; write i/n, such as 1/8 for the first of eight")
    return Part(int(first), int(second))


def check_options(options: EngineOptions, store: str | None) -> None:
    """Raise UnitError for options that do not go together."""
    if store is None and not options.part.whole:
        raise UnitError(f"--units {options.part}: give --store, a folder or an object store that all parts share")
    if store is None and options.engine == "kubernetes":
        raise UnitError("--engine kubernetes: give --store, a folder or an object store that pods reach too")
    if options.engine != "local" and not options.part.whole:
        raise UnitError(f"--units {options.part}: is for --engine local; {options.engine} shares the units out itself")
    if options.engine == "kubernetes" and not options.jobs.image:
        raise UnitError("--engine kubernetes: give --image, the image that pods run")


def run_units(
    units: Sequence[Unit],
    store: Store,
    options: EngineOptions,
    *,
    verify: Verify | None = None,
    here: InProcess | None = None,
    said: Said = lambda _sentence: None,
    told: Told = lambda _tally, _unit: None,
    command: str = "",
) -> Tally:
    """Give every unit of this part a result. `here` runs one in this process, where one at a time is enough."""
    mine = units[options.part.number - 1 :: options.part.of]
    leftovers = store.clean()
    if leftovers:
        said(f"{store.url}: removed {leftovers} partial file{'s' * (leftovers > 1)} of a process that was killed")
    name = store.put_plan(Plan(command, tuple(units)))
    standing = store.standing(mine, verify)
    for key, sentence in standing.damaged.items():
        store.drop_result(key)
        said(f"{sentence}; it is run again")
    tally = Tally(len(mine), skipped=len(standing.done), damaged=len(standing.damaged))
    missing = [unit for unit in mine if unit.key not in standing.done]
    told(tally, None)
    with closing(_finished(missing, store, options, here, name, said)) as finished:
        for unit in finished:
            tally.done += 1
            told(tally, unit)
    return tally


def _finished(
    missing: Sequence[Unit],
    store: Store,
    options: EngineOptions,
    here: InProcess | None,
    plan: str,
    said: Said,
) -> Iterator[Unit]:
    if not missing:
        return
    if options.engine == "kubernetes":
        from podium_lab.units.jobs import run_jobs

        yield from run_jobs(missing, store, options, plan, said)
        return
    if options.engine == "local" and here is not None and (options.workers == 1 or len(missing) == 1):
        for unit in missing:
            store.put_result(unit, here(unit))
            yield unit
        return
    with closing(dispatch(missing, _workers(missing, store, options))) as results:
        for number, payload in results:
            if payload is not None:
                store.put_result(missing[number], payload)
            yield missing[number]


def _workers(missing: Sequence[Unit], store: Store, options: EngineOptions) -> Workers:
    if options.engine == "ray":
        from podium_lab.units.ray_tasks import RayWorkers

        return RayWorkers(missing, store, options.workers)
    return LocalWorkers(min(options.workers, len(missing)), store.url)

