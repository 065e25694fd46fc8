"""Fills in what kube-scheduler assumes where a file says nothing: the default plugin set, zeros that mean "default".

Most defaults stand beside their fields in `types.py`. Here are those that need more than a constant: some fields take
their default when they are zero or empty, not only when they are left out, and a profile's plugins are laid over the
default set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from podium.config.points import Point
from podium.config.registry import PluginType
from podium.config.types import (
    API_VERSION,
    KIND,
    ClientConnection,
    ExtenderConfig,
    KubeSchedulerConfiguration,
    LeaderElection,
    PluginEntry,
    Plugins,
    PluginSet,
    SchedulerProfile,
)
from podium.kube.versions import NEWEST, Gate, VersionRules

S = TypeVar("S", bound=msgspec.Struct)

DEFAULT_SCHEDULER_NAME = "default-scheduler"
EVERYTHING = "*"
"""Under `disabled`, the name that stands for all plugins."""

# The order is the running order at every extension point. DynamicResources stands before DefaultPreemption: giving an
# idle claim back is better than evicting a pod.
DEFAULT_PLUGINS = Plugins(
    multi_point=PluginSet(
        enabled=(
            PluginEntry(name="SchedulingGates"),
            PluginEntry(name="PrioritySort"),
            PluginEntry(name="NodeName"),
            PluginEntry(name="NodeUnschedulable"),
            PluginEntry(name="TaintToleration", weight=3),
            PluginEntry(name="NodeAffinity", weight=2),
            PluginEntry(name="NodePorts"),
            PluginEntry(name="NodeResourcesFit", weight=1),
            PluginEntry(name="VolumeRestrictions"),
            PluginEntry(name="NodeVolumeLimits"),
            PluginEntry(name="VolumeBinding"),
            PluginEntry(name="VolumeZone"),
            PluginEntry(name="PodTopologySpread", weight=2),
            PluginEntry(name="InterPodAffinity", weight=2),
            PluginEntry(name="DynamicResources", weight=2),
            PluginEntry(name="DefaultPreemption"),
            PluginEntry(name="NodeResourcesBalancedAllocation", weight=1),
            PluginEntry(name="ImageLocality", weight=1),
            PluginEntry(name="DefaultBinder"),
            PluginEntry(name="NodeDeclaredFeatures"),
        )
    )
)

_GATED_PLUGINS = {
    Gate.GANG_SCHEDULING: (PluginEntry(name="GangScheduling"),),
    Gate.TOPOLOGY_AWARE: (
        PluginEntry(name="TopologyPlacementGenerator"),
        PluginEntry(name="PodGroupPodsCount", weight=1),
    ),
}
"""What the default set ends with while a gate is on."""


def default_plugins(rules: VersionRules) -> Plugins:
    """The default set of a Kubernetes minor, with what its gates add."""
    gated = [entry for gate, entries in _GATED_PLUGINS.items() if gate in rules.gates for entry in entries]
    entries = {entry.name: entry for entry in DEFAULT_PLUGINS.multi_point.enabled}
    if not rules.declared_features:
        del entries["NodeDeclaredFeatures"]
    names = list(entries)
    if not rules.node_name_first:
        names.remove("NodeName")
        names.insert(names.index("NodeUnschedulable") + 1, "NodeName")
    return Plugins(multi_point=PluginSet(enabled=(*(entries[name] for name in names), *gated)))


def with_defaults(config: KubeSchedulerConfiguration, rules: VersionRules = NEWEST) -> KubeSchedulerConfiguration:
    """The configuration with nothing left open except `percentageOfNodesToScore`, where unset means something."""
    profiles = config.profiles or (SchedulerProfile(),)
    if len(profiles) == 1 and profiles[0].scheduler_name is None:
        # With several profiles each must say its name; validation asks for it.
        profiles = (replace(profiles[0], scheduler_name=DEFAULT_SCHEDULER_NAME),)
    contention, defaults = config.enable_contention_profiling, default_plugins(rules)
    return replace(
        config,
        profiles=tuple(replace(each, plugins=merge_plugins(defaults, each.plugins)) for each in profiles),
        leader_election=_zeros_replaced(
            config.leader_election,
            LeaderElection(),
            "lease_duration",
            "renew_deadline",
            "retry_period",
            "resource_lock",
            "resource_name",
            "resource_namespace",
        ),
        client_connection=_zeros_replaced(config.client_connection, ClientConnection(), "content_type", "qps", "burst"),
        extenders=tuple(_zeros_replaced(each, ExtenderConfig(), "http_timeout") for each in config.extenders),
        enable_contention_profiling=config.enable_profiling if contention is None else contention,
    )


def _zeros_replaced(given: S, default: S, *fields: str) -> S:
    zeros = {name: getattr(default, name) for name in fields if not getattr(given, name)}
    return replace(given, **zeros)


def merge_plugins(default: Plugins, custom: Plugins) -> Plugins:
    """The plugin sets of a profile, defaults included.

    Done per key (`score`, `multiPoint`, …), before any extension point is filled:

    1. The defaults keep their order, without those the profile disables; `*` disables them all.
    2. A default that the profile also enables takes the profile's entry, and so its weight, in its old position.
    3. What else the profile enables follows, in the profile's order. Disabling and enabling the same plugin therefore
       moves it to the end.

    The disabled names stay in the result: filling the extension points needs them.
    """
    wanted = custom.by_key()
    return Plugins.from_keys({key: merge_plugin_set(ours, wanted[key]) for key, ours in default.by_key().items()})


def merge_plugin_set(default: PluginSet, custom: PluginSet) -> PluginSet:
    """One key's set. A name enabled twice by the profile stays in twice; building the profile refuses it."""
    disabled = tuple(PluginEntry(name=plugin.name) for plugin in (*custom.disabled, *default.disabled))
    dropped = {plugin.name for plugin in disabled}
    entry_of = {plugin.name: index for index, plugin in enumerate(custom.enabled)}

    enabled: list[PluginEntry] = []
    placed: set[int] = set()
    for plugin in () if EVERYTHING in dropped else default.enabled:
        if plugin.name in dropped:
            continue
        replacement = entry_of.get(plugin.name)
        if replacement is None:
            enabled.append(plugin)
        else:
            enabled.append(custom.enabled[replacement])
            placed.add(replacement)
    enabled.extend(plugin for index, plugin in enumerate(custom.enabled) if index not in placed)
    return PluginSet(enabled=tuple(enabled), disabled=disabled)


def beside_defaults(
    plugins: Sequence[PluginType], args: Mapping[str, Any] | None = None, weight: int | None = None
) -> dict[str, Any]:
    """The configuration, as data, that enables some plugins beside those of kube-scheduler's default profile.

    Arguments and weight are for one plugin.
    """
    if (args is not None or weight is not None) and len(plugins) != 1:
        raise ValueError("args and weight are for one plugin; give a configuration where there are several")
    enabled = [{"name": plugin.name, **({} if weight is None else {"weight": weight})} for plugin in plugins]
    sorts = any(Point.QUEUE_SORT in plugin.points for plugin in plugins)
    binds = any(Point.BIND in plugin.points for plugin in plugins)
    replaced = [*(["PrioritySort"] if sorts else []), *(["DefaultBinder"] if binds else [])]
    multi_point = {"enabled": enabled, "disabled": [{"name": name} for name in replaced]}
    if binds:  # the plugin comes first, and may leave a pod to the default one
        multi_point["enabled"] = [*enabled, {"name": "DefaultBinder"}]
    given = [] if args is None else [{"name": plugins[0].name, "args": dict(args)}]
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "profiles": [{"plugins": {"multiPoint": multi_point}, "pluginConfig": given}],
    }
