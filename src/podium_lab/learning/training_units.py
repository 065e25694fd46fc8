"""Cuts a generation of a training into units, one for each candidate, and runs them."""

from __future__ import annotations

from pathlib import Path
from time import sleep
from typing import Any

import msgspec
import numpy as np

from podium_lab.learning.cma_es import candidates
from podium_lab.learning.kernel_state import Floats
from podium_lab.learning.lists import list_name, lists_folder, put_lists
from podium_lab.learning.train import SavedSearch, Training, WeightsTrial, begun, try_out
from podium_lab.units.estimate import UnitEstimate, estimate_units
from podium_lab.units.inputs import UnitInputs
from podium_lab.units.run import EngineOptions, UnitPart, UnitRunner
from podium_lab.units.store import UnitStore
from podium_lab.units.unit import DamagedError, Unit, UnitError, code_version, seconds_now
from podium_lab.units.work import perform

SETTINGS = "settings"
EVERY, PATIENCE = 0.5, 30.0
"""Seconds between two looks at a shared store, and without a result after which a part helps others."""


class CandidateSettings(msgspec.Struct, frozen=True):
    """The input that says what to try."""

    training: dict[str, Any]
    """The fields of `Training`, with lists as units call them."""
    generation: int
    numbers: list[float]
    """The candidate."""


class UnitFigures:
    """Tries candidates as units: on any engine, once for each store.

    Parts of one training (`--units`) share a store: each runs its share of a generation and waits for the others. What
    is long in coming, one that waits runs itself.
    """

    def __init__(self, runner: UnitRunner, command: str = "", part: UnitPart = UnitPart()) -> None:  # noqa: B008  a constant
        self._runner = runner
        self._command = command
        self._part = part
        self._lists: dict[tuple[str, ...], dict[str, str]] = {}

    def __call__(self, training: Training, generation: int, tried: Floats) -> Floats:
        store = self._runner.store
        units = self.units(training, generation, tried)
        self._runner.run(units, verify=_verify, command=self._command)
        if not self._part.whole:
            self._await(units)
        return np.array([_figure(store, unit) for unit in units])

    def _await(self, units: list[Unit]) -> None:
        """Wait for other parts, and run what none of them has stored for a while."""
        store, quiet, before = self._runner.store, seconds_now(), -1
        while missing := [unit for unit in units if unit.key not in store.present()]:
            if len(missing) != before:
                quiet, before = seconds_now(), len(missing)
            elif seconds_now() - quiet > PATIENCE:
                late = missing[-1]
                store.put_result(late, perform(late, self._runner.inputs))
            else:
                sleep(EVERY)

    def units(self, training: Training, generation: int, tried: Floats) -> list[Unit]:
        """A unit for each candidate."""
        store = self._runner.store
        lists = self._lists.get(training.lists)
        if lists is None:
            lists = self._lists[training.lists] = put_lists(Path(training.data), training.lists, store)
        named = [list_name(name, digest) for name, digest in zip(training.lists, list(lists.values())[1:], strict=True)]
        written = {**training._asdict(), "data": "", "lists": named}
        version = code_version()
        units = []
        for numbers in tried.tolist():
            settings = msgspec.json.encode(CandidateSettings(written, generation, numbers), order="deterministic")
            inputs = {SETTINGS: store.put_input(settings), **lists}
            units.append(Unit("train", training.form, (training.seed, training.seed), inputs, version))
        return units


def run_unit(unit: Unit, inputs: UnitInputs) -> bytes:
    """The figure of one candidate."""
    settings = msgspec.json.decode(inputs.content(unit.inputs[SETTINGS]), type=CandidateSettings)
    given = settings.training
    start = None if given["start"] is None else tuple(tuple(row) for row in given["start"])
    folder = str(lists_folder(inputs, unit.inputs))
    training = Training(**{**given, "data": folder, "lists": tuple(given["lists"]), "start": start})
    trial = WeightsTrial(training, settings.generation, (np.array(settings.numbers),))
    return msgspec.msgpack.encode(float(try_out(trial)[0]))


def estimated(training: Training, runner: UnitRunner, options: EngineOptions) -> UnitEstimate:
    """What a whole training will take, from two candidates of its first generation."""
    tried = candidates(begun(training))
    units = UnitFigures(runner).units(training, 0, tried)
    found = estimate_units(units, runner.store, options.workers, options.part)
    return found._replace(units=training.generations * training.population // options.part.of)


def _verify(_unit: Unit, payload: bytes) -> float:
    try:
        return msgspec.msgpack.decode(payload, type=float)
    except msgspec.DecodeError:
        raise DamagedError("holds no figure of a candidate") from None


def _figure(store: UnitStore, unit: Unit) -> float:
    payload = store.result(unit)
    if payload is None:
        raise UnitError(f"{unit.label}: its result is gone; start the same command again")
    return _verify(unit, payload)


class StoredSearch(SavedSearch):
    """A search that is written beside the policies, and kept in the store, too: the store alone can be gone on with."""

    def __init__(self, path: Path, store: UnitStore) -> None:
        super().__init__(path)
        self._store = store
        self._name = f"checkpoints/{path.name}"

    def read(self) -> bytes | None:
        return super().read() or self._store.place.read(self._name)

    def write(self, content: bytes) -> None:
        super().write(content)
        self._store.place.write(self._name, content)
