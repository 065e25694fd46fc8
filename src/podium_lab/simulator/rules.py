"""Checks the values of a scenario beyond what their types say: exactly one origin, amounts that can be read, names.

The pods and nodes that a scenario describes are checked by kube-apiserver's rules: fields, names, labels, resources.
What kube-apiserver would refuse would be simulated in silence otherwise: a field of a pod's spec with a typo constrains
nothing, and no node offers `cpus`. The rules are those of the embedded API. Where requests are drawn, one draw stands
for all, because rules depend on names and not on amounts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from podium import packages
from podium.config.durations import Duration
from podium.config.field import FieldPath, Step
from podium.config.problems import did_you_mean
from podium.config.seeds import parse_seeds
from podium.config.strict import Mistake
from podium.kube.meta import Amount
from podium.kube.node import Taint
from podium.kube.pod import PodSpec
from podium_lab.simulator.distributions import LARGEST_SPREAD, DistributionError, is_duration, is_quantity
from podium_lab.simulator.figures import SUMMED_UP
from podium_lab.simulator.scenario import (
    Contender,
    Distribution,
    Fault,
    Generated,
    NodeGroup,
    PodShape,
    PodSource,
    RewardRules,
    Scenario,
    UsageModel,
    Varying,
    default_of,
)

SHORTEST = Duration.parse("1ms")
"""Between two measurements, two checkpoints or two faults."""
MOST_MEASUREMENTS = 100_000
"""In a window."""
EXACTLY_ONE = "expected exactly one of"
SOURCES = ("generate", "openb", "azure", "broker", "dump", "vmr2l")
USED = ("cpu", "memory")
ORIGINS = ("count", "file", "openb", "hosts", "vmr2l")
PRIORITIES = range(-(2**31), 2**31)

T = TypeVar("T")


def check(scenario: Scenario) -> Iterator[Mistake]:
    """Everything that is wrong with the values of a scenario."""
    root = FieldPath()
    yield from _check_numbers(scenario, root)
    for at, group in listed(scenario.nodes, root.child("nodes")):
        yield from _check_group(group, at)
    if not isinstance(scenario.workload, str):
        for at, workload in listed(scenario.workload, root.child("workload")):
            yield from _exactly_one(workload, SOURCES, at)
            yield from _check_workload(workload, at)
        if not scenario.workload:
            yield Mistake(root.child("workload"), "expected at least one workload")
    yield from _check_profiles(scenario.profiles, root.child("profiles"))
    try:
        parse_seeds(scenario.seeds)
    except ValueError as error:
        yield Mistake(root.child("seeds"), str(error))
    for i, fault in enumerate(scenario.faults):
        yield from _check_fault(fault, root.child("faults").index(i))
    yield from _check_varying(scenario.start_delay, root.child("startDelay"), time=True)
    if scenario.usage is not None:
        yield from _check_usage(scenario.usage, root.child("usage"))
    if scenario.rewards is not None:
        yield from _check_rewards(scenario.rewards, scenario.usage, root.child("rewards"))
    yield from _check_checkpoints(scenario, root)
    if scenario.duration is not None and scenario.duration == 0:
        yield Mistake(root.child("duration"), "must be longer than nothing")
    for i, name in enumerate(scenario.summary):
        if name not in SUMMED_UP:
            hint = did_you_mean(name, SUMMED_UP) or f"expected some of {', '.join(SUMMED_UP)}"
            yield Mistake(root.child("summary").index(i), f'there is no figure "{name}"', hint)


def _check_numbers(value: Any, path: FieldPath) -> Iterator[Mistake]:
    """Times before the start, and numbers that are none, wherever they stand."""
    if isinstance(value, Duration):
        if value < 0:
            yield Mistake(path, f"expected a time of 0 or more, got {value}")
    elif isinstance(value, float) and not math.isfinite(value):
        yield Mistake(path, f"expected a number, got {value}")
    elif isinstance(value, msgspec.Struct):
        for each in msgspec.structs.fields(value):
            yield from _check_numbers(getattr(value, each.name), path.child(each.encode_name))
    elif isinstance(value, dict):
        for name, item in value.items():
            yield from _check_numbers(item, path.child(str(name)))
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            yield from _check_numbers(item, path.index(i))


def listed(value: T | list[T], path: FieldPath) -> list[tuple[FieldPath, T]]:
    """One value, or several, with their paths."""
    if isinstance(value, list):
        return [(path.index(i), each) for i, each in enumerate(value)]
    return [(path, value)]


def _exactly_one(part: Any, names: Sequence[str], path: FieldPath) -> Iterator[Mistake]:
    given = [name for name in names if getattr(part, name) is not None]
    if len(given) != 1:
        yield Mistake(path, f"{EXACTLY_ONE} {', '.join(names)}, got {', '.join(given) or 'none'}")


def _only_with(part: msgspec.Struct, condition: str, names: Collection[str], path: FieldPath) -> Iterator[Mistake]:
    """Fields that were given though nothing reads them."""
    for field in msgspec.structs.fields(part):
        if field.name in names and getattr(part, field.name) != default_of(field):
            yield Mistake(path.child(field.encode_name), f"only {condition} has it; leave it out")


def _check_group(group: NodeGroup, path: FieldPath) -> Iterator[Mistake]:
    yield from _exactly_one(group, ORIGINS, path)
    if group.count is None:
        described = ("name", "allocatable", "labels", "zones", "taints", "latency")
        yield from _only_with(group, "a group with a count", described, path)
        return
    if not group.allocatable:
        yield Mistake(path.child("allocatable"), "expected what a node offers, such as {cpu: 4, memory: 16Gi}")
    for name, amount in group.allocatable.items():
        yield from _check_varying(amount, path.child("allocatable", name))
    yield from _check_varying(group.latency, path.child("latency"))
    if group.count > 1 and "{index}" not in group.name:
        yield Mistake(path.child("name"), f'"{group.name}" names {group.count} nodes; write {{index}} into it')
    yield from group_mistakes(group, path)


def _check_workload(workload: PodSource, path: FieldPath) -> Iterator[Mistake]:
    if workload.generate is not None:
        yield from _check_generated(workload.generate, path.child("generate"))
    if workload.azure is not None:
        yield from _exactly_one(workload.azure, ("file", "folder"), path.child("azure"))
    if workload.dump is not None:
        yield from _check_varying(workload.dump.lifetime, path.child("dump", "lifetime"), time=True)
    if workload.broker is not None:
        for name, priority in workload.broker.priorities.items():
            if priority not in PRIORITIES:
                yield Mistake(path.child("broker", "priorities", name), "expected a number of 32 bits")


def _check_generated(generate: Generated, path: FieldPath) -> Iterator[Mistake]:
    yield from _check_varying(generate.interval, path.child("interval"), time=True)
    yield from _check_varying(generate.lifetime, path.child("lifetime"), time=True)
    yield from _check_varying(generate.batch, path.child("batch"))
    yield from pod_name_mistakes(generate, path)
    total = sum(shape.weight for shape in generate.shapes)
    if not 0 < total < math.inf:
        yield Mistake(path.child("shapes"), "expected at least one shape with a weight above 0")
    for i, shape in enumerate(generate.shapes):
        at = path.child("shapes").index(i)
        for kind in ("requests", "limits"):
            for name, amount in getattr(shape, kind).items():
                yield from _check_varying(amount, at.child(kind, name))
        if shape.priority not in PRIORITIES:
            yield Mistake(at.child("priority"), "expected a number of 32 bits")
        yield from shape_mistakes(shape, at)


def _check_fault(fault: Fault, path: FieldPath) -> Iterator[Mistake]:
    joins = fault.kind == "join"
    if joins != (fault.group is not None):
        wrong = "join needs group, the nodes that come" if joins else "only join has a group"
        yield Mistake(path.child("group"), wrong)
    elif fault.group is not None:
        yield from _check_group(fault.group, path.child("group"))
        yield from _only_with(fault, "fail, drain or leave", ("nodes", "count", "lasts"), path)
        if fault.every is not None and fault.group.count == 1 and "{index}" not in fault.group.name:
            wrong = f'"{fault.group.name}" joins again and again; write {{index}} into it'
            yield Mistake(path.child("group", "name"), wrong)
    if fault.kind != "fail":
        yield from _only_with(fault, "fail", ("evict_after",), path)
    for name in ("at", "every", "lasts"):
        yield from _check_varying(getattr(fault, name), path.child(name), time=True)
    if fault.every is not None and _largest(fault.every) < SHORTEST.seconds:
        yield Mistake(path.child("every"), f"must be {SHORTEST} or longer")


def _largest(value: Varying) -> float:
    """The largest time that is likely; infinite where it cannot be read."""
    parts: list[Any] = [value]
    if isinstance(value, Distribution):
        parts = [each for name in value.__struct_fields__ for each in _amounts(getattr(value, name))]
    try:
        return max(is_duration(each) for each in parts if each is not None)
    except (DistributionError, ValueError):
        return math.inf


def _check_checkpoints(scenario: Scenario, root: FieldPath) -> Iterator[Mistake]:
    points = scenario.checkpoints
    if points.every is not None and points.every < SHORTEST:
        yield Mistake(root.child("checkpoints", "every"), f"must be {SHORTEST} or longer")
    if points.every is not None and points.arrived_pct is not None:
        yield Mistake(root.child("checkpoints"), "expected every or arrivedPct, not both")
    if scenario.summary_at and points.arrived_pct is None:
        yield Mistake(root.child("summaryAt"), "goes by arrived demand, so the scenario needs checkpoints.arrivedPct")


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
    for name in ("level", "swing", "network", "connections"):
        yield from _check_varying(getattr(usage, name), path.child(name))
    for name in ("period", "interval", "window"):
        if getattr(usage, name) < SHORTEST:
            yield Mistake(path.child(name), f"must be {SHORTEST} or longer")
    if usage.late > usage.interval:
        yield Mistake(path.child("late"), f"must be at most the interval, {usage.interval}")
    if usage.interval >= SHORTEST and usage.window / usage.interval > MOST_MEASUREMENTS:
        yield Mistake(path.child("window"), f"at most {MOST_MEASUREMENTS:,} measurements fit into it")
    for name, amount in usage.unrequested.items():
        if name not in USED:
            hint = did_you_mean(name, USED)
            yield Mistake(path.child("unrequested", name), f"expected {' or '.join(USED)}", hint)
        yield from _check_varying(amount, path.child("unrequested", name))


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
    if not isinstance(value, Distribution):
        yield from _unfit([] if value is None else [value], path, fits)
        return
    yield from _exactly_one(value, value.__struct_fields__, path)
    for name in value.__struct_fields__:
        given = getattr(value, name)
        if given is None:
            continue
        at = path.child(name)
        wrong = list(_unfit(given[:1] if name == "lognormal" else _amounts(given), at, fits))
        yield from wrong
        if name == "uniform" and not wrong and fits(given[0]) > fits(given[1]):
            yield Mistake(at, f"expected the smaller amount first, got {given[0]} before {given[1]}")
        if name == "lognormal" and not 0 <= given[1] <= LARGEST_SPREAD:
            yield Mistake(at, f"expected a deviation from 0 to {LARGEST_SPREAD:g}, got {given[1]}")
        if name == "choice" and not (0 < sum(given.values()) < math.inf and min(given.values()) >= 0):
            yield Mistake(at, "expected amounts with weights of 0 and more, and one above 0")


def _unfit(amounts: Sequence[Amount], path: FieldPath, fits: Callable[[Amount], float]) -> Iterator[Mistake]:
    for each in amounts:
        try:
            fits(each)
        except DistributionError as error:
            yield Mistake(path, str(error))


def _amounts(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (tuple, dict)) else [value]


# kube-apiserver's rules

RESOURCES = ("cpu", "memory", "ephemeral-storage", "pods")
ORDINARY = frozenset(("cpu", "memory"))
_STEP = re.compile(r"\[([^\]]+)\]|([^.\[\]]+)")
_CONTAINER = "spec.containers[0].resources."


def shape_mistakes(shape: PodShape, path: FieldPath) -> Iterator[Mistake]:
    """What kube-apiserver would say of the pods of a shape; `path` leads to the shape."""
    if not (shape.labels or shape.annotations or shape.spec or shape.limits) and set(shape.requests) <= ORDINARY:
        return  # nothing that could be refused, and the rules take a moment to load
    requests, limits = _some(shape.requests), _some(shape.limits)
    for name in [each for each in requests if "/" in each and each not in limits]:
        limits[name] = requests[name]  # the simulated cluster overcommits nothing else
    for name in [each for each in limits if _drawn(shape.limits, each) or _drawn(shape.requests, each)]:
        limits[name] = requests.get(name, limits[name])
    container = {"name": "main", "image": "main", "resources": {"requests": requests, "limits": limits}}
    spec = {"containers": [container], **shape.spec}
    metadata = {"name": "pod", "namespace": "default", "labels": shape.labels, "annotations": shape.annotations}
    for kind in ("requests", "limits"):
        yield from _unknown_resources(getattr(shape, kind), path.child(kind))
    for field, message in _refused("Pod", {"metadata": metadata, "spec": spec}):
        inner = field.removeprefix(_CONTAINER) if "containers" not in shape.spec else field
        if "standard resource" not in message:
            yield _mistake(path, inner.removeprefix("metadata."), message)


def pod_name_mistakes(generate: Generated, path: FieldPath) -> Iterator[Mistake]:
    """What kube-apiserver would say of the names of generated pods and of their namespace."""
    from kubecel.names import dns_label_errors, dns_subdomain_errors

    for name, errors in (
        ("name", dns_subdomain_errors(f"{generate.name}-{generate.count}")),
        ("namespace", dns_label_errors(generate.namespace)),
    ):
        for error in errors:
            yield Mistake(path.child(name), f'"{getattr(generate, name)}": {error}')


def group_mistakes(group: NodeGroup, path: FieldPath) -> Iterator[Mistake]:
    """What kube-apiserver would say of the nodes of a template."""
    from kubecel.names import dns_subdomain_errors

    for error in dns_subdomain_errors(_filled(group.name)):
        yield Mistake(path.child("name"), f'"{group.name}": {error}')
    if not (group.labels or group.taints) and set(group.allocatable) <= {*RESOURCES}:
        return
    labels = {_filled(key): _filled(value) for key, value in group.labels.items()}
    node = {
        "metadata": {"name": "node", "labels": labels},
        "spec": {"taints": [dict(each) for each in group.taints]},
        "status": {"allocatable": _some(group.allocatable), "capacity": _some(group.allocatable)},
    }
    for field, message in _refused("Node", node):
        if not field.startswith("status.capacity"):
            yield _mistake(path, re.sub(r"^(metadata|spec|status)\.", "", field), message)
    yield from _unknown_resources(group.allocatable, path.child("allocatable"))


def _unknown_resources(names: Iterable[str], path: FieldPath) -> Iterator[Mistake]:
    for name in names:
        if "/" not in name and name not in RESOURCES and not name.startswith("hugepages-"):
            known = f"expected {', '.join(RESOURCES)}, hugepages-… or a name with a domain, such as nvidia.com/gpu"
            yield Mistake(path.child(name), f'no resource is called "{name}"; {known}', did_you_mean(name, RESOURCES))


def _refused(kind: str, obj: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Field and message of everything that the API would not take, or would warn of; none where no package knows."""
    for target in packages.api_rules():
        for field, message, unknown in packages.load(target)(kind, obj):
            yield field, _unknown(field.rpartition(".")[2]) if unknown else message


def _unknown(field: str) -> str:
    known = [each.encode_name for kind in (PodSpec, Taint) for each in msgspec.structs.fields(kind)]
    hint = did_you_mean(field, known)
    return f'unknown field "{field}"{f" ({hint})" if hint else ""}'


def _some(amounts: Mapping[str, Varying]) -> dict[str, Amount]:
    return {name: 1 if isinstance(amount, Distribution) else amount for name, amount in amounts.items()}


def _drawn(amounts: Mapping[str, Varying], name: str) -> bool:
    return isinstance(amounts.get(name), Distribution)


def _filled(text: str) -> str:
    return text.replace("{index}", "0").replace("{zone}", "0")


def _mistake(path: FieldPath, field: str, message: str) -> Mistake:
    steps: list[Step] = [key if not key.isdigit() else int(key) for pair in _STEP.findall(field) for key in pair if key]
    return Mistake(FieldPath((*path.steps, *steps)), message)
