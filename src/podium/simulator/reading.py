"""Reads a scenario from YAML: typed, strictly, with every mistake named by file, line and column.

Files that a scenario names are looked for in the data folder that was given, then beside the scenario, then in the
current folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from podium.config.field import FieldPath, Step
from podium.config.positions import ConfigDocument, MalformedConfigError, parse
from podium.config.strict import Mistake, decode
from podium.simulator.distributions import DistributionError, is_duration, is_quantity
from podium.simulator.errors import ScenarioError
from podium.simulator.overrides import Override, apply
from podium.simulator.scenario import (
    Contender,
    Distribution,
    NodeGroup,
    PodSource,
    Scenario,
    UsageModel,
    Varying,
)
from podium.simulator.seeds import parse_seeds

LARGEST = 4_000_000
"""Characters a scenario may have."""

T = TypeVar("T")


class Source(msgspec.Struct, frozen=True):
    """Where a scenario was read, and so where the files are that it names."""

    file: str
    folders: tuple[str, ...]

    def find(self, name: str) -> Path:
        """A file that the scenario names."""
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
    found = [_mistake(file, document, each, overrides) for each in mistakes]
    found += [
        f"{file}:{line}:{column}: {path}: it is already on line {first_line}; keep one"
        for path, _, (line, column), _, first_line in document.repeated
    ]
    if scenario is not None:
        found += [_mistake(file, document, each, overrides) for each in check(scenario)]
    if found or scenario is None:
        raise ScenarioError(found)
    folders = tuple(dict.fromkeys([*([data] if data else []), str(Path(file).parent), "."]))
    positions = {steps: (position.line, position.column) for steps, position in document.positions.items()}
    return LoadedScenario(scenario, Source(file, folders), positions)


def _mistake(file: str, document: ConfigDocument, mistake: Mistake, overrides: Iterable[Override]) -> str:
    steps = mistake.path.steps
    hint = f" ({mistake.hint})" if mistake.hint else ""
    for override in overrides:
        if steps[: len(override.steps)] == override.steps:
            return f"--set {override.text}: {mistake.path}: {mistake.message}{hint}"
    position = document.position(mistake.path)
    field = f"{mistake.path}: " if steps else ""
    return f"{file}:{position.line}:{position.column}: {field}{mistake.message}{hint}"


# What the types alone do not say


def check(scenario: Scenario) -> Iterator[Mistake]:
    """Everything that is wrong with the values of a scenario."""
    root = FieldPath()
    for at, group in listed(scenario.nodes, root.child("nodes")):
        yield from _check_group(group, at)
    if not isinstance(scenario.workload, str):
        for at, workload in listed(scenario.workload, root.child("workload")):
            yield from _exactly_one(workload, ("generate", "openb", "azure", "broker", "dump"), at)
            yield from _check_workload(workload, at)
    yield from _check_profiles(scenario.profiles, root.child("profiles"))
    try:
        parse_seeds(scenario.seeds)
    except ValueError as error:
        yield Mistake(root.child("seeds"), str(error))
    for i, fault in enumerate(scenario.faults):
        at = root.child("faults").index(i)
        if (fault.kind == "join") != (fault.group is not None):
            wrong = "join needs group, the nodes that come" if fault.kind == "join" else "only join has a group"
            yield Mistake(at.child("group"), wrong)
        elif fault.group is not None:
            yield from _check_group(fault.group, at.child("group"))
        for name in ("at", "every", "lasts"):
            yield from _check_varying(getattr(fault, name), at.child(name), time=True)
        if fault.every is not None and fault.every == 0:
            yield Mistake(at.child("every"), "must be longer than nothing")
    yield from _check_varying(scenario.start_delay, root.child("startDelay"), time=True)
    if scenario.usage is not None:
        yield from _check_usage(scenario.usage, root.child("usage"))
    if scenario.checkpoints.every is not None and scenario.checkpoints.every <= 0:
        yield Mistake(root.child("checkpoints", "every"), "must be longer than nothing")
    if scenario.duration is not None and scenario.duration <= 0:
        yield Mistake(root.child("duration"), "must be longer than nothing")


def listed(value: T | list[T], path: FieldPath) -> list[tuple[FieldPath, T]]:
    """One value, or several, with their paths."""
    if isinstance(value, list):
        return [(path.index(i), each) for i, each in enumerate(value)]
    return [(path, value)]


def _exactly_one(part: Any, names: Sequence[str], path: FieldPath) -> Iterator[Mistake]:
    given = [name for name in names if getattr(part, name) is not None]
    if len(given) != 1:
        yield Mistake(path, f"expected exactly one of {', '.join(names)}, got {', '.join(given) or 'none'}")


def _check_group(group: NodeGroup, path: FieldPath) -> Iterator[Mistake]:
    yield from _exactly_one(group, ("count", "file", "openb", "hosts"), path)
    if group.count is not None and not group.allocatable:
        yield Mistake(path.child("allocatable"), "expected what a node offers, such as {cpu: 4, memory: 16Gi}")
    for name, amount in group.allocatable.items():
        yield from _check_varying(amount, path.child("allocatable", name))
    if group.count is not None and group.count > 1 and "{index}" not in group.name:
        yield Mistake(path.child("name"), f'"{group.name}" names {group.count} nodes; write {{index}} into it')


def _check_workload(workload: PodSource, path: FieldPath) -> Iterator[Mistake]:
    generate = workload.generate
    if generate is not None:
        at = path.child("generate")
        yield from _check_varying(generate.interval, at.child("interval"), time=True)
        yield from _check_varying(generate.lifetime, at.child("lifetime"), time=True)
        yield from _check_varying(generate.batch, at.child("batch"))
        if not any(shape.weight for shape in generate.shapes):
            yield Mistake(at.child("shapes"), "expected at least one shape with a weight above 0")
        for i, shape in enumerate(generate.shapes):
            for kind in ("requests", "limits"):
                for name, amount in getattr(shape, kind).items():
                    yield from _check_varying(amount, at.child("shapes").index(i).child(kind, name))
    if workload.azure is not None:
        yield from _exactly_one(workload.azure, ("file", "folder"), path.child("azure"))
    if workload.dump is not None:
        yield from _check_varying(workload.dump.lifetime, path.child("dump", "lifetime"), time=True)


def _check_profiles(profiles: list[Contender], path: FieldPath) -> Iterator[Mistake]:
    if not profiles:
        yield Mistake(path, "expected at least one profile")
    names: set[str] = set()
    for i, each in enumerate(profiles):
        at = path.index(i)
        if not each.name or "," in each.name:
            yield Mistake(at.child("name"), "expected a name without a comma")
        if each.name in names:
            yield Mistake(at.child("name"), f'another profile is called "{each.name}", too')
        names.add(each.name)
        if each.profile is not None and each.file is not None:
            yield Mistake(at, "expected profile or file, not both")


def _check_usage(usage: UsageModel, path: FieldPath) -> Iterator[Mistake]:
    for name in ("level", "swing", "network"):
        yield from _check_varying(getattr(usage, name), path.child(name))
    for name in ("period", "interval", "window"):
        if getattr(usage, name) <= 0:
            yield Mistake(path.child(name), "must be longer than nothing")


def _check_varying(value: Varying | None, path: FieldPath, *, time: bool = False) -> Iterator[Mistake]:
    fits = is_duration if time else is_quantity
    if isinstance(value, Distribution):
        yield from _exactly_one(value, value.__struct_fields__, path)
        parts = [each for name in value.__struct_fields__ for each in _amounts(getattr(value, name))]
        if value.choice is not None and not sum(value.choice.values()) > 0:
            yield Mistake(path.child("choice"), "expected amounts with weights above 0")
    else:
        parts = [value]
    for each in parts:
        try:
            if each is not None:
                fits(each)
        except DistributionError as error:
            yield Mistake(path, str(error))


def _amounts(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (tuple, dict)) else [value]
