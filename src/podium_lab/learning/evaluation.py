"""Judges a policy on pod lists against published rules: plans the runs, cuts them into units, and finds their rows.

A unit is one list and seed. Rows are kept in a file as they are found, so that an evaluation that was stopped goes on.
A line is what one list and seed gave, under a key made of all that it depends on: the contents of both lists, the seed,
who is judged and by which rules. Lines of other evaluations, and a last one that was cut off, do not count.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from podium.kube.documents import FILE, DocumentError, read_json
from podium_lab.learned.policy_file import path_of, read_policy
from podium_lab.learning.bound import bounds
from podium_lab.learning.extra import LearningError
from podium_lab.learning.judge import (
    TIE_RULES,
    Contestant,
    Question,
    Row,
    answer,
    published,
    refuse_seen,
    scorer_of,
)
from podium_lab.learning.lists import LIST, find_list, find_lists, find_nodes, lists_folder, nodes_path, put_lists
from podium_lab.units.estimate import UnitEstimate, estimate_units
from podium_lab.units.inputs import UnitInputs
from podium_lab.units.run import EngineOptions, OnUnit, Tally, UnitRunner
from podium_lab.units.store import UnitStore
from podium_lab.units.unit import DamagedError, Unit, UnitError, code_version

Found = Callable[[int, list[Row]], None]
"""Called with the number of a question that was answered now, and its rows."""


class EvaluationRequest(NamedTuple):
    """What is to be judged, as it was typed."""

    policy: str | None
    """A policy that ships, or a policy file; None: only the bound is wanted."""
    data: Path
    lists: str
    seeds: Sequence[int]
    against: str
    """Published rules, by name."""
    churn: bool
    """Whether pods come and go, instead of staying."""
    ties: str
    """Which of equally good nodes is taken: one of `TIE_RULES`, or all."""
    loads: str
    """Of the churn protocol: demand as shares of the GPUs."""
    queue: bool
    counted: bool
    """Whether the policy must count pods instead of knowing the list."""
    bound: bool
    """Whether rows of what no policy can pass are wanted, too."""


class Evaluation(NamedTuple):
    """Who is judged, by which questions."""

    contestants: tuple[Contestant, ...]
    """The policy first."""
    questions: list[Question]
    lists: dict[str, str]
    """Pod lists by what rows call them."""


def planned(request: EvaluationRequest) -> Evaluation:
    """The evaluation that was asked for; raises LearningError and PolicyError."""
    find_nodes(request.data)
    lists = find_lists(request.lists, request.data)
    if request.counted and request.churn:
        raise LearningError("--knowledge counted: is for the static protocol; in churn a policy knows the list")
    if request.policy is None:
        if not request.bound:
            raise LearningError("POLICY is missing; write the name of a policy, or --bound")
        return Evaluation((), [], lists)
    file = read_policy(path_of(request.policy))
    refuse_seen(file, request.seeds)
    judged = (
        Contestant(file.name, scorer_of(file), request.counted, file.sha256),
        *published(name for name in request.against.split(",") if name),
    )
    rules = TIE_RULES if request.ties == "all" else (request.ties,)
    loads = _loads(request.loads) if request.churn else ()
    questions = [
        Question(request.data, given, seed, judged, rules, loads, request.queue, label)
        for label, given in lists.items()
        for seed in request.seeds
    ]
    return Evaluation(judged, questions, lists)


def bound_rows(request: EvaluationRequest, lists: dict[str, str]) -> list[Row]:
    """What no policy can pass, by a linear program for each list."""
    return [row for given in lists.values() for row in bounds(request.data, given, request.seeds[0])]


def _loads(text: str) -> tuple[float, ...]:
    try:
        found = tuple(float(each) for each in text.split(","))
    except ValueError:
        found = (0.0,)
    if not all(0 < each <= 2 for each in found):
        raise LearningError(f'--loads: "{text}" are no loads; write shares of the GPUs such as 0.95,1.00')
    return found


def answered(
    questions: Sequence[Question], file: Path | None, ask: Callable[[Sequence[Question], Found], dict[int, list[Row]]]
) -> list[list[Row]]:
    """The rows of each question that could be answered, in order. `ask` answers those that the file does not have."""
    if file is None:
        return [rows for _, rows in sorted(ask(questions, lambda _number, _rows: None).items())]
    keys = [_key(question) for question in questions]
    try:
        known = _read(file)
        missing = [number for number, key in enumerate(keys) if key not in known]
        with file.open("ab") as out:

            def keep(number: int, rows: list[Row]) -> None:
                out.write(msgspec.json.encode({"key": keys[missing[number]], "rows": rows}) + b"\n")
                out.flush()

            fresh = ask([questions[number] for number in missing], keep)
    except OSError as error:
        raise LearningError(f"{file}: cannot be read and written: {error.strerror}") from None
    found = known | {keys[missing[number]]: rows for number, rows in fresh.items()}
    return [found[key] for key in keys if key in found]


def _read(file: Path) -> dict[str, list[Row]]:
    known: dict[str, list[Row]] = {}
    if not file.exists():
        return known
    text = file.read_bytes()
    whole = text[: text.rfind(b"\n") + 1]
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            found: Any = read_json(line, bounds=FILE)
            known[found["key"]] = found["rows"]
        except (DocumentError, KeyError, TypeError):
            raise LearningError(f"{file}:{number}: is no row of podium evaluate; write another --keep") from None
    if whole != text:
        file.write_bytes(whole)
    return known


def _key(question: Question) -> str:
    contents = find_list(question.list, question.data).path.read_bytes(), nodes_path(question.data).read_bytes()
    judged = [(each.name, each.digest, each.counted) for each in question.contestants]
    rules = question.label, question.seed, judged, question.ties, question.loads, question.queue
    hashed = [hashlib.sha256(each).hexdigest() for each in contents]
    return hashlib.sha256(msgspec.json.encode((hashed, rules))).hexdigest()


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
