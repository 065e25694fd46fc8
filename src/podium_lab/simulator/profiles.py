"""Turns the profiles of a scenario into configurations that can run, with mistakes at their place in the scenario."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from podium.config import (
    DEFAULT_SCHEDULER_NAME,
    ConfigError,
    ConfigProblem,
    Registry,
    SchedulerConfig,
    default_config,
    load_config,
)
from podium.config.field import Step
from podium.config.load import LoadedConfig
from podium.config.types import API_VERSION, KIND
from podium.engine.sampling import ENOUGH
from podium.kube.versions import KNOWN
from podium_lab.simulator.reading import LoadedScenario
from podium_lab.simulator.scenario import Contender, ScenarioError
from podium_lab.simulator.workload import classes_of, typical_of, workloads
from podium_plugins.gpu.request import WHOLE
from podium_plugins.gpu.typical_pods import PodType

FROM_WORKLOAD = "workload"
FILLED = {"typicalPods": typical_of, "knowledge": classes_of}
"""Arguments that may be taken from the workload: the typical pods of it, or all classes of pods."""
_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)")


def configuration(loaded: LoadedScenario, contender: Contender, registry: Registry) -> SchedulerConfig:
    """The configuration of one profile; raises ScenarioError with everything that is wrong with it."""
    return _configured(loaded, contender, registry).config


def profile_oddities(loaded: LoadedScenario, contender: Contender, registry: Registry, nodes: int) -> Iterator[str]:
    """What is legal in a profile and probably not meant, in a cluster of so many nodes."""
    config, warnings = _configured(loaded, contender, registry)
    yield from (_moved(each, loaded, contender) if contender.file is None else str(each) for each in warnings)
    shares = [config.percentage_of_nodes_to_score, *(each.percentage_of_nodes_to_score for each in config.profiles)]
    if any(share is not None for share in shares) and nodes <= ENOUGH:
        yield f'profile "{contender.name}": percentageOfNodesToScore changes nothing below {ENOUGH + 1} nodes'


def _configured(loaded: LoadedScenario, contender: Contender, registry: Registry) -> LoadedConfig:
    rules = KNOWN[loaded.kubernetes_version]
    if contender.file is not None:
        path = loaded.source.find(contender.file)
        return load_config(path.read_text(encoding="utf-8-sig"), str(path), registry, rules)
    if contender.profile is None:
        return LoadedConfig(default_config(registry, rules), [])
    profile = {"schedulerName": DEFAULT_SCHEDULER_NAME, **_with_typical_pods(contender.profile, loaded)}
    written = {"apiVersion": API_VERSION, "kind": KIND, "profiles": [profile]}
    try:
        return load_config(msgspec.json.encode(written).decode(), loaded.source.file, registry, rules)
    except ConfigError as error:
        raise ScenarioError(_moved(problem, loaded, contender) for problem in error.problems) from None


def _with_typical_pods(profile: dict[str, Any], loaded: LoadedScenario) -> dict[str, Any]:
    """The profile with the workload's pods where it asks for them."""
    written = profile.get("pluginConfig")
    if not isinstance(written, list):
        return profile
    return {**profile, "pluginConfig": [_filled(each, loaded) for each in written]}


def _filled(plugin: Any, loaded: LoadedScenario) -> Any:
    args = plugin.get("args") if isinstance(plugin, dict) else None
    if not isinstance(args, dict):
        return plugin
    filled = dict(args)
    for name, of in FILLED.items():
        if args.get(name) == FROM_WORKLOAD:
            given = of(workloads(loaded.scenario, loaded.source), loaded.source)
            if not given:
                problem = f"{name}: {FROM_WORKLOAD}: the workload is no openb list; write the typical pods down"
                raise ScenarioError(f"{loaded.position_of('profiles')}: {problem}")
            filled[name] = [_typical_pod(kind) for kind in given]
    return {**plugin, "args": filled}


def _typical_pod(kind: PodType) -> dict[str, Any]:
    request = kind.request
    return {
        "cpu": f"{kind.cpu}m",
        "gpuCount": request.gpus,
        "gpuMilli": request.milli or WHOLE,
        "gpuCardModels": list(request.models),
        "pods": kind.pods,
    }


def _moved(problem: ConfigProblem, loaded: LoadedScenario, contender: Contender) -> str:
    """A problem of a configuration as one of the scenario that it stands in."""
    index = loaded.scenario.profiles.index(contender)
    position = loaded.position_of("profiles", index, "profile", *_inside(problem.path))
    hint = f" ({problem.hint})" if problem.hint else ""
    return f"{position}: profiles[{index}].profile{problem.path.removeprefix('profiles[0]')}: {problem.message}{hint}"


def _inside(path: str) -> list[Step]:
    """The steps of a problem's path, below `profiles[0]`."""
    steps: list[Step] = [int(number) if number else name for number, name in _STEP.findall(path)]
    return steps[2:] if steps[:2] == ["profiles", 0] else []
