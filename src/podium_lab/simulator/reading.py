"""Reads a scenario from YAML: typed, strictly, with every mistake named by file, line and column.

Files that a scenario names are looked for in the data folder that was given, then beside the scenario, then in the
current folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from podium.config.field import Step
from podium.config.positions import ConfigDocument, MalformedConfigError, parse
from podium.config.strict import Mistake, decode
from podium.kube.versions import NEWEST
from podium_lab.simulator.overrides import Override, apply
from podium_lab.simulator.rules import EXACTLY_ONE, check
from podium_lab.simulator.scenario import Scenario, ScenarioError

LARGEST = 4_000_000
"""Characters a scenario may have."""


class Source(msgspec.Struct, frozen=True):
    """Where a scenario was read, and so where the files are that it names."""

    file: str
    folders: tuple[str, ...]
    inputs: dict[str, str] = msgspec.field(default_factory=dict)
    """Where each named file lies, where that is known already: on a machine that has only what a unit needs."""

    def find(self, name: str) -> Path:
        """A file that the scenario names."""
        if name in self.inputs:
            return Path(self.inputs[name])
        path = Path(name)
        tried = [path] if path.is_absolute() else [Path(folder) / path for folder in self.folders]
        for each in tried:
            if each.exists():
                return each
        positions = ", ".join(sorted({str(each.parent) for each in tried}))
        raise ScenarioError(f"{name}: no such file in {positions}; give its folder with --data")


class LoadedScenario(msgspec.Struct, frozen=True):
    """A scenario that can run, and where it stands."""

    scenario: Scenario
    source: Source
    positions: dict[tuple[Step, ...], tuple[int, int]]
    """Line and column of each value in the file."""
    kubernetes_version: str = str(NEWEST)
    """The minor by whose rules pods are placed."""

    def position_of(self, *steps: Step) -> str:
        """file:line:column of a field, or of the nearest around it that is in the file."""
        while steps not in self.positions and steps:
            steps = steps[:-1]
        line, column = self.positions.get(steps, (1, 1))
        return f"{self.source.file}:{line}:{column}"


def read_scenario(path: str, *, data: str | None = None, sets: Sequence[str] = ()) -> LoadedScenario:
    """Reads a file, with values overridden by `key=value` texts."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise ScenarioError(f"{path}:1:1: not UTF-8 text; save the file as UTF-8") from None
    return load_scenario(text, path, data=data, sets=sets)


def load_scenario(text: str, file: str, *, data: str | None = None, sets: Sequence[str] = ()) -> LoadedScenario:
    """Reads a text; `file` is what to call it."""
    if len(text) > LARGEST:
        raise ScenarioError(f"{file}:1:1: {len(text):,} characters; a scenario has at most {LARGEST:,}")
    try:
        document = parse(text)
    except MalformedConfigError as error:
        raise ScenarioError(f"{file}:{error.line}:1: {error}") from None
    value = document.value
    if not isinstance(value, dict):
        raise ScenarioError(f"{file}:1:1: expected a mapping with nodes, workload and profiles")
    overrides = apply(value, sets)
    scenario, mistakes = decode(value, Scenario)
    wrong = [] if scenario is None else list(check(scenario))
    found = [_mistake(file, document, each, overrides) for each in _distinct(mistakes, wrong)]
    found += [
        f"{file}:{line}:{column}: {path}: it is already on line {first_line}; keep one"
        for path, _, (line, column), _, first_line in document.repeated
    ]
    if found or scenario is None:
        raise ScenarioError(found)
    folders = tuple(dict.fromkeys([*([data] if data else []), str(Path(file).parent), "."]))
    positions = {steps: (position.line, position.column) for steps, position in document.positions.items()}
    return LoadedScenario(scenario, Source(file, folders), positions)


def _distinct(unfit: Sequence[Mistake], wrong: Sequence[Mistake]) -> Iterator[Mistake]:
    """What does not fit its type, and what is wrong beyond that, without what only follows from the first."""
    one_of = {each.path.steps: each.message for each in wrong if each.message.startswith(EXACTLY_ONE)}
    follows: set[tuple[Step, ...]] = set()
    for each in unfit:
        steps = each.path.steps
        if not each.unknown_field:
            follows |= {steps[:length] for length in range(len(steps) + 1)}
        elif steps[:-1] in one_of:
            follows.add(steps[:-1])
            needed = one_of[steps[:-1]].partition(", got")[0]
            yield each._replace(message=f'there is no "{steps[-1]}", {needed}')
            continue
        yield each
    yield from (each for each in wrong if each.path.steps not in follows)


def _mistake(file: str, document: ConfigDocument, mistake: Mistake, overrides: Iterable[Override]) -> str:
    steps = mistake.path.steps
    hint = f" ({mistake.hint})" if mistake.hint else ""
    for override in overrides:
        if steps[: len(override.steps)] == override.steps:
            return f"--set {override.text}: {mistake.path}: {mistake.message}{hint}"
    position = document.position(mistake.path)
    field = f"{mistake.path}: " if steps else ""
    return f"{file}:{position.line}:{position.column}: {field}{mistake.message}{hint}"
