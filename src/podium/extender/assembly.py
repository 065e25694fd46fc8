"""Assembles the engine behind the answers: the agents' plugins in one profile, on one cluster. It never schedules.

All agents of a process share it, so a plugin that two of them use is at work once, and learns from both. Arguments
come from `pluginConfig` of a KubeSchedulerConfiguration, as in `podium run`, so that one file serves both.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from podium.client import RESOURCES, WATCHED, ApiResource
from podium.config import load_config
from podium.config.points import Point
from podium.config.registry import Registry
from podium.engine.scheduler import Scheduler
from podium.extender.agents import Agent
from podium.extender.binding import BindingWriter
from podium.framework.clock import Clock
from podium.framework.depends_on import NodePart
from podium.framework.handle import Driver
from podium.framework.plugin import Plugin
from podium.framework.plugin_failures import OnPluginFailure
from podium.framework.pod_outcomes import PodOutcomes
from podium.framework.profile import ProfileRuntime
from podium.kube import Node, Pod
from podium.kube.documents import SETTINGS, read_yaml
from podium.kube.versions import NEWEST, VersionRules
from podium.load.readings import LoadSource

PROFILE = "podium-extender"
"""The scheduler name of the profile; no pod is expected to ask for it."""
QUEUE, BINDER = "PrioritySort", "DefaultBinder"
"""Every profile must say how pods are queued and bound. Where no plugin of an agent binds, the usual one does."""


def build_engine(
    agents: Sequence[Agent],
    registry: Registry,
    *,
    clock: Clock,
    writer: BindingWriter,
    config: tuple[str, str] | None = None,
    rules: VersionRules = NEWEST,
    rng: random.Random | None = None,
    load: LoadSource | None = None,
    pod_outcomes: PodOutcomes | None = None,
    report: Callable[[str], None] = lambda _message: None,
    on_failure: OnPluginFailure | None = None,
) -> Scheduler:
    """`config`: the text of a configuration file, and its name for messages. Raises ConfigError or PluginError."""
    names = dict.fromkeys((QUEUE, *(name for agent in agents for name in agent.plugins), BINDER))
    profile: dict[str, Any] = {
        "schedulerName": PROFILE,
        "plugins": {"multiPoint": {"enabled": [{"name": name} for name in names], "disabled": [{"name": "*"}]}},
        "pluginConfig": [] if config is None else plugin_config(*config, registry, rules),
    }
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }
    text, source = msgspec.json.encode(document).decode(), "the agents" if config is None else config[1]
    return Scheduler(
        load_config(text, source, registry, rules).config,
        registry,
        Driver(
            clock=clock,
            writer=writer,
            rng=rng or random.Random(0),
            load=load,
            pod_outcomes=pod_outcomes,
            report=report,
            on_failure=on_failure,
        ),
        writer,
    )


def plugin_config(text: str, source: str, registry: Registry, rules: VersionRules = NEWEST) -> list[Any]:
    """The arguments in a configuration file: `pluginConfig` of its first profile."""
    load_config(text, source, registry, rules)  # whatever is wrong with the file is said with its line
    profiles = read_yaml(text, source, SETTINGS).get("profiles") or [{}]
    found: list[Any] = profiles[0].get("pluginConfig") or []
    return found


def runtime_of(engine: Scheduler) -> ProfileRuntime:
    return engine.profiles[PROFILE]


def look_beyond_rows(engine: Scheduler) -> bool:
    """Whether any plugin's answer about a node depends on others than that node."""
    runtime = runtime_of(engine)
    plugins = (*runtime.at(Point.FILTER), *runtime.at(Point.SCORE))
    return any(plugin.depends_on.node == NodePart.ANYTHING for plugin in plugins)


def may_see_images(engine: Scheduler) -> bool:
    """Whether any plugin may look at the images on nodes; one that is not trusted may."""
    return any(plugin.reads_images or not plugin.trusted for plugin in runtime_of(engine).plugins.values())


def kinds_to_watch(plugins: Iterable[type[Plugin]]) -> list[ApiResource[Any]]:
    """What plugins need to see of a cluster: nodes; pods where these matter; everything where one looks further."""
    kinds: dict[type, None] = {Node: None}
    for plugin in plugins:
        declared = plugin.depends_on
        node = declared.node if plugin.points & {Point.FILTER, Point.SCORE} else NodePart.OBJECT
        if node == NodePart.ANYTHING and declared.kinds is None:
            return list(WATCHED)
        if node > NodePart.OBJECT or plugin.observe is not Plugin.observe:
            kinds[Pod] = None
        kinds.update(dict.fromkeys(declared.kinds or ()))
    return [RESOURCES[kind] for kind in kinds]
