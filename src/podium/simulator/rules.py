"""Checks the values of a scenario beyond what their types say: exactly one origin, amounts that can be read, names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from podium.config.field import FieldPath
from podium.config.strict import Mistake
from podium.simulator.distributions import DistributionError, is_duration, is_quantity
from podium.simulator.scenario import (
    Contender,
    Distribution,
    NodeGroup,
    PodSource,
    RewardRules,
    Scenario,
    UsageModel,
    Varying,
)
from podium.simulator.seeds import parse_seeds

T = TypeVar("T")


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
    if scenario.rewards is not None:
        yield from _check_rewards(scenario.rewards, scenario.usage, root.child("rewards"))
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


def _check_rewards(rewards: RewardRules, usage: UsageModel | None, path: FieldPath) -> Iterator[Mistake]:
    if usage is None:
        yield Mistake(path, "rewards go by load, so the scenario needs usage")
    yield from _check_varying(rewards.after, path.child("after"), time=True)
    times = [phase.at for phase in rewards.phases]
    if times != sorted(times):
        yield Mistake(path.child("phases"), "expected phases in the order of their times")
    for i, phase in enumerate(rewards.phases):
        for label in phase.labels:
            if "=" not in label:
                yield Mistake(path.child("phases").index(i).child("labels"), f'"{label}": write it as key=value')


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
