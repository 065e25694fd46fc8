"""Reads a scenario from YAML: typed, strictly, with every mistake named by file, line and column.

Files that a scenario names are looked for in the data folder that was given, then beside the scenario, then in the
current folder.

`key=value` texts are applied to a scenario before it is decoded. A key is a path from the top
(`workload.generate.count`, `nodes.0.count`), or any end of one that fits in one place only (`list`, `generate.count`).
The value is read as YAML.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, get_args, get_origin

import msgspec

from podium.config.field import FieldPath, Step
from podium.config.positions import ConfigDocument, MalformedConfigError, parse
from podium.config.strict import Mistake, decode
from podium.kube.versions import NEWEST
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


# Overrides


class Override(NamedTuple):
    """A value that replaces what the file says."""

    text: str
    steps: tuple[Step, ...]


def apply(value: dict[str, Any], sets: Sequence[str]) -> list[Override]:
    """Writes the overrides into the value of a document."""
    return [_apply(value, text) for text in sets]


def _apply(value: dict[str, Any], text: str) -> Override:
    key, equals, written = text.partition("=")
    if not equals or not key:
        raise ScenarioError(f"--set {text}: write it as KEY=VALUE, such as --set generate.count=1000")
    try:
        new = parse(written).value
    except MalformedConfigError as error:
        raise ScenarioError(f"--set {text}: {error}") from None
    steps = _find(value, key)
    _write(value, steps, new, text)
    return Override(text, steps)


def _find(value: dict[str, Any], key: str) -> tuple[Step, ...]:
    words: tuple[Step, ...] = tuple(int(word) if word.isdigit() else word for word in key.split("."))
    if words[0] in _fields(Scenario):
        return words
    found = [(*path, *words) for path, fields in _mappings(value, Scenario, ()) if words[0] in fields]
    if len(found) == 1:
        return found[0]
    if not found:
        raise ScenarioError(f'--set {key}: the scenario has no "{words[0]}"; write the whole path, such as nodes.count')
    paths = ", ".join(str(FieldPath(steps)) for steps in found)
    raise ScenarioError(f"--set {key}: that may be {paths}; write the whole path")


def _mappings(value: Any, kind: Any, path: tuple[Step, ...]) -> Iterator[tuple[tuple[Step, ...], dict[str, Any]]]:
    """Every mapping of the document with the fields that its type has."""
    if isinstance(value, list):
        for i, item in enumerate(value):
            yield from _mappings(item, kind, (*path, i))
        return
    struct = _struct_in(kind)
    if struct is None or not isinstance(value, dict):
        return
    fields = _fields(struct)
    yield path, fields
    for name, item in value.items():
        if name in fields:
            yield from _mappings(item, fields[name], (*path, name))


def _fields(kind: type[msgspec.Struct]) -> dict[str, Any]:
    return {each.encode_name: each.type for each in msgspec.structs.fields(kind)}


def _struct_in(kind: Any) -> type[msgspec.Struct] | None:
    """The one struct that a type speaks of: itself, in a union or in a list."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return kind
    if get_origin(kind) is dict:
        return None
    return next((found for each in get_args(kind) if (found := _struct_in(each)) is not None), None)


def _write(value: Any, steps: tuple[Step, ...], new: Any, text: str) -> None:
    for step, following in pairwise(steps):
        if isinstance(value, dict) and isinstance(step, str):
            value = value.setdefault(step, {})
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            raise ScenarioError(f'--set {text}: there is nothing at "{step}" that could have a "{following}"')
    last = steps[-1]
    if isinstance(value, dict):
        value[str(last)] = new
    elif isinstance(value, list) and isinstance(last, int) and last < len(value):
        value[last] = new
    else:
        raise ScenarioError(f'--set {text}: there is nothing that could have a "{last}"')
