"""Cuts an evaluation into units, one for each list and seed, and runs them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from podium_lab.learned.policy_file import path_of, read_policy
from podium_lab.learning.judge import Contestant, Question, Row, answer, published, scorer_of
from podium_lab.learning.list_inputs import LIST, lists_folder, put_lists
from podium_lab.units.errors import DamagedError, UnitError
from podium_lab.units.estimate import UnitEstimate, estimate_units
from podium_lab.units.inputs import UnitInputs
from podium_lab.units.run import EngineOptions, OnUnit, Tally, UnitRunner
from podium_lab.units.store import UnitStore
from podium_lab.units.unit import Unit, code_version

SETTINGS, POLICY = "settings", "policy"


class QuestionSettings(msgspec.Struct, frozen=True):
    """The input that says what is judged, and how."""

    list: str
    label: str
    seed: int
    against: tuple[str, ...]
    counted: bool
    ties: tuple[str, ...]
    loads: tuple[float, ...]
    queue: bool


def rows_of(
    policy: str,
    questions: Sequence[Question],
    runner: UnitRunner,
    command: str,
    on_unit: OnUnit = lambda _tally, _unit: None,
    found: Callable[[int, list[Row]], None] = lambda _number, _rows: None,
) -> dict[int, list[Row]]:
    """The rows of every question that has a result when all of this part have one, by the question's number; `found`
    is called with those of each as soon as it is answered."""
    store = runner.store
    units = _units(policy, questions, store)
    numbers = {unit.key: number for number, unit in enumerate(units)}

    def tell(tally: Tally, unit: Unit | None) -> None:
        on_unit(tally, unit)
        if unit is not None:
            found(numbers[unit.key], _stored(store, unit))

    runner.run(units, verify=_rows, on_unit=tell, command=command)
    present = store.present()
    return {number: _stored(store, unit) for number, unit in enumerate(units) if unit.key in present}


def estimated(policy: str, questions: Sequence[Question], runner: UnitRunner, options: EngineOptions) -> UnitEstimate:
    """What answering all questions will take."""
    units = _units(policy, questions, runner.store)
    return estimate_units(units, runner.store, options.workers, options.part)


def _units(policy: str, questions: Sequence[Question], store: UnitStore) -> list[Unit]:
    file = store.put_input(path_of(policy).read_bytes())
    lists: dict[str, dict[str, str]] = {}
    units = []
    for question in questions:
        if question.list not in lists:
            lists[question.list] = put_lists(question.data, [question.list], store)
        (name,) = [each.removeprefix(LIST) for each in lists[question.list] if each.startswith(LIST)]
        judged, *others = question.contestants
        settings = QuestionSettings(
            name,
            question.label,
            question.seed,
            tuple(each.name for each in others),
            judged.counted,
            question.ties,
            question.loads,
            question.queue,
        )
        digest = store.put_input(msgspec.json.encode(settings, order="deterministic"))
        inputs = {SETTINGS: digest, POLICY: file, **lists[question.list]}
        seeds = question.seed, question.seed
        units.append(Unit("evaluate", judged.name, seeds, inputs, code_version()))
    return units


def _stored(store: UnitStore, unit: Unit) -> list[Row]:
    payload = store.result(unit)
    if payload is None:
        raise UnitError(f"{unit.label}: its result is gone; start the same command again")
    return _rows(unit, payload)


def run_unit(unit: Unit, inputs: UnitInputs) -> bytes:
    """The rows of one question."""
    settings = msgspec.json.decode(inputs.content(unit.inputs[SETTINGS]), type=QuestionSettings)
    file = read_policy(inputs.path(unit.inputs[POLICY], "policy.json"))
    judged = Contestant(file.name, scorer_of(file), settings.counted, file.sha256)
    question = Question(
        Path(lists_folder(inputs, unit.inputs)),
        settings.list,
        settings.seed,
        (judged, *published(settings.against)),
        settings.ties,
        settings.loads,
        settings.queue,
        settings.label,
    )
    return msgspec.msgpack.encode(answer(question))


def _rows(_unit: Unit, payload: bytes) -> list[Row]:
    try:
        return msgspec.msgpack.decode(payload, type=list[Row])
    except msgspec.DecodeError:
        raise DamagedError("holds no rows of an evaluation") from None
