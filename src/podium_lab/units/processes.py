"""Runs units in processes of this machine, one unit at a time in each.

A worker that ends (killed, out of memory) costs its unit and nothing else: another process takes its place. When the
command itself is killed, workers finish the unit they are at, store it, and end.
"""

from __future__ import annotations

import gc
import multiprocessing
import signal
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

import msgspec

from podium_lab.units.dispatch import Done
from podium_lab.units.inputs import inputs_of_store
from podium_lab.units.store import open_store
from podium_lab.units.unit import StoreError, Unit
from podium_lab.units.work import Failure, UnitOutcome, attempt, failure_of

PRELOADED = ["podium_lab.simulator.simulation_units"]
"""What every process needs: imported once, in the process that all are forked from."""


IDLE_ENDS_WITHIN = 5.0
"""Seconds that a process without a unit has to end by itself."""


class _Worker:
    """One process and the unit it is at."""

    def __init__(self, context: Any, url: str) -> None:
        self.pipe: Connection
        self.pipe, theirs = context.Pipe()
        self.process: BaseProcess = context.Process(target=serve_units, args=(theirs, url), daemon=True)
        self.process.start()
        theirs.close()
        self.number: int | None = None


class LocalWorkers:
    """Processes that store what they find."""

    name = "this machine"

    def __init__(self, count: int, url: str) -> None:
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(PRELOADED)
        self._url = url
        self._count = count
        self._workers: list[_Worker] = []

    @property
    def room(self) -> int:
        return self._count - sum(each.number is not None for each in self._workers)

    @property
    def pids(self) -> list[int]:
        """Of the processes that run."""
        return [each.process.pid for each in self._workers if each.process.pid is not None]

    def begin(self, number: int, unit: Unit) -> None:
        idle = next((each for each in self._workers if each.number is None), None)
        if idle is None:
            idle = _Worker(self._context, self._url)
            self._workers.append(idle)
        idle.number = number
        with suppress(OSError):  # it has just ended: `wait` finds that out
            idle.pipe.send_bytes(msgspec.msgpack.encode(unit))

    def wait(self, seconds: float) -> list[Done]:
        busy = {each.pipe: each for each in self._workers if each.number is not None}
        done = []
        for pipe in wait(list(busy), seconds):
            worker = busy[pipe]  # type: ignore[index]  # only pipes were asked about
            number = worker.number
            assert number is not None, "only busy workers are asked"
            worker.number = None
            try:
                failure = msgspec.msgpack.decode(worker.pipe.recv_bytes(), type=Failure | None)
            except (EOFError, OSError):
                self._bury(worker)
                done.append(Done(number, None))
                continue
            done.append(Done(number, UnitOutcome(None, failure)))
        return done

    def drop(self, number: int) -> None:
        for each in [each for each in self._workers if each.number == number]:
            self._bury(each)

    def close(self) -> None:
        for each in list(self._workers):
            self._bury(each)

    def _bury(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        worker.pipe.close()
        if worker.number is None:
            worker.process.join(IDLE_ENDS_WITHIN)  # it removes its copies of inputs
        worker.process.kill()
        worker.process.join()


def serve_units(pipe: Connection, url: str) -> None:
    """Run the units that come through a pipe, until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt of the terminal is for the command
    gc.freeze()  # what was imported stays: no need to look through it at every collection
    store = open_store(url)
    inputs = inputs_of_store(store)
    while True:
        try:
            unit = msgspec.msgpack.decode(pipe.recv_bytes(), type=Unit)
        except EOFError:
            inputs.close()
            return
        payload, failure = attempt(unit, inputs)
        if payload is not None:
            try:
                store.put_result(unit, payload)
            except StoreError as error:
                failure = failure_of(error)
        try:
            pipe.send_bytes(msgspec.msgpack.encode(failure))
        except OSError:  # the command has ended; the result is in the store
            inputs.close()
            return
