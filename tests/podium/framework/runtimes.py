"""Profiles for tests: the real registry with small plugins that a test defines, configured as a file would."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from podium.cluster import Cluster
from podium.config import SchedulerConfig, load_config
from podium.framework import Cycle, Handle, Plugin
from podium.framework.profile import ProfileRuntime
from podium.kube import Pod
from podium.kube.versions import NEWEST, NO_GATES, Gates, VersionRules
from podium.plugins import load_registry
from tools.kit.builders import make_handle

REGISTRY = load_registry()
PROFILE = "default-scheduler"
BARE = ("PrioritySort", "DefaultBinder")


class Setup(NamedTuple):
    config: SchedulerConfig
    registry: dict[str, type[Plugin]]


def setup(
    *plugins: type[Plugin] | str,
    default: bool = False,
    args: Mapping[str, Mapping[str, Any]] | None = None,
    weights: Mapping[str, int] | None = None,
    profiles: Sequence[str] = (PROFILE,),
    sorter: type[Plugin] | None = None,
    gates: Gates = NO_GATES,
    rules: VersionRules = NEWEST,
    **top: Any,
) -> Setup:
    """Profiles that run these plugins, in this order: alone, but for sorting and binding, or behind the default ones.

    Plugins of the tree go by name. `sorter` takes PrioritySort's place. `top` are fields of the configuration file.
    """
    registry = {**REGISTRY, **{each.name: each for each in plugins if not isinstance(each, str)}}
    names = [each if isinstance(each, str) else each.name for each in plugins]
    bare = BARE
    if sorter is not None:
        registry[sorter.name] = sorter
        bare = (sorter.name, "DefaultBinder")
    binds = any("bind" in registry[name].points for name in names)
    if default and sorter is not None:
        names = [sorter.name, *names]
    if not default:
        names = [*(name for name in bare if not (binds and name == "DefaultBinder")), *names]
    enabled = [{"name": name, "weight": (weights or {}).get(name, 0)} for name in names]
    disabled = "*" if not default else "PrioritySort" if sorter is not None else ""
    multi_point = {"enabled": enabled, "disabled": [{"name": disabled}] if disabled else []}
    profile = {
        "plugins": {"multiPoint": multi_point},
        "pluginConfig": [{"name": name, "args": given} for name, given in (args or {}).items()],
    }
    data = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": name, **profile} for name in profiles],
        **top,
    }
    return Setup(load_config(json.dumps(data), "scheduler.yaml", registry, rules.and_gates(*gates)).config, registry)


def make_runtime(
    cluster: Cluster, *plugins: type[Plugin] | str, handle: Handle | None = None, **options: Any
) -> ProfileRuntime:
    config, registry = setup(*plugins, **options)
    return ProfileRuntime(config.profiles[0], registry, handle or make_handle(cluster))


def cycle_of(runtime: ProfileRuntime, pod: Pod) -> Cycle:
    return Cycle(pod, runtime.handle.cluster)


def answering(name: str, **answers: Any) -> type[Plugin]:
    """A plugin whose methods give these answers whatever they are asked, and raise those that are exceptions."""

    def method(answer: Any) -> Any:
        def respond(_self: Plugin, *_args: Any) -> Any:
            if isinstance(answer, Exception):
                raise answer
            return answer

        return respond

    return type(name, (Plugin,), {point: method(answer) for point, answer in answers.items()})
