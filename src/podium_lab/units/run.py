"""Runs units: skips what a store has, does the rest on an engine, and names what was damaged.

    plan → verify what is there → run what is missing → every unit has a result in the store

Engines differ in where they run a unit, and in nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from types import TracebackType
from typing import NamedTuple, Self

import msgspec

from podium_lab.units.dispatch import Workers, dispatch
from podium_lab.units.inputs import inputs_of_store
from podium_lab.units.processes import LocalWorkers
from podium_lab.units.store import UnitPlan, UnitStore, Verify
from podium_lab.units.unit import Unit, UnitError
from podium_lab.units.work import perform


class UnitPart(NamedTuple):
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
    part: UnitPart = UnitPart()
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


OnNotice = Callable[[str], None]
OnUnit = Callable[[Tally, Unit | None], None]
"""Called when it begins, and with each unit that is finished."""
InProcess = Callable[[Unit], bytes]


def read_part(text: str | None) -> UnitPart:
    """
    >>> read_part("2/8")
    UnitPart(number=2, of=8)
    """
    if text is None:
        return UnitPart()
    first, _, second = text.partition("/")
    if not (first.isdecimal() and second.isdecimal() and 1 <= int(first) <= int(second)):
        raise UnitError(f"--units {text}: is no part; write i/n, such as 1/8 for the first of eight")
    return UnitPart(int(first), int(second))


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


class UnitRunner:
    """Runs units on one engine; its workers stay between one call and the next. A context manager."""

    def __init__(self, store: UnitStore, options: EngineOptions, on_notice: OnNotice = lambda _sentence: None) -> None:
        self.store = store
        self.inputs = inputs_of_store(store)
        self._options = options
        self._on_notice = on_notice
        self._workers: Workers | None = None

    def __enter__(self) -> Self:
        leftovers = self.store.clean()
        if leftovers:
            files = f"{leftovers} partial file{'s' * (leftovers > 1)}"
            self._on_notice(f"{self.store.url}: removed {files} of a process that was killed")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._workers is not None:
            self._workers.close()

    def run(
        self,
        units: Sequence[Unit],
        *,
        verify: Verify | None = None,
        here: InProcess | None = None,
        on_unit: OnUnit = lambda _tally, _unit: None,
        command: str = "",
    ) -> Tally:
        """Give every unit of this part a result. `here` runs one in this process, where one at a time is enough."""
        part = self._options.part
        mine = units[part.number - 1 :: part.of]
        plan = self.store.put_plan(UnitPlan(command, tuple(units)))
        standing = self.store.standing(mine, verify)
        for key, sentence in standing.damaged.items():
            self.store.drop_result(key)
            self._on_notice(f"{sentence}; it is run again")
        tally = Tally(len(mine), skipped=len(standing.done), damaged=len(standing.damaged))
        missing = [unit for unit in mine if unit.key not in standing.done]
        on_unit(tally, None)
        with closing(self._finished(missing, plan, here)) as finished:
            for unit in finished:
                tally.done += 1
                on_unit(tally, unit)
        return tally

    def _finished(self, missing: Sequence[Unit], plan: str, here: InProcess | None) -> Generator[Unit, None, None]:
        options, store = self._options, self.store
        if not missing:
            return
        if options.engine == "kubernetes":
            from podium_lab.units.jobs import run_jobs

            yield from run_jobs(missing, store, options, plan, self._on_notice)
        elif options.engine == "local" and options.workers == 1:
            for unit in missing:
                store.put_result(unit, perform(unit, self.inputs) if here is None else here(unit))
                yield unit
        else:
            with closing(dispatch(missing, self._open_workers())) as results:
                for number, payload in results:
                    if payload is not None:
                        store.put_result(missing[number], payload)
                    yield missing[number]

    def _open_workers(self) -> Workers:
        if self._workers is None:
            if self._options.engine == "ray":
                from podium_lab.units.ray_tasks import RayWorkers

                self._workers = RayWorkers(self.store, self._options.workers)
            else:
                self._workers = LocalWorkers(self._options.workers, self.store.url)
        return self._workers
