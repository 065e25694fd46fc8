"""Fills in what kube-scheduler assumes where a file says nothing: the default plugin set, zeros that mean "default".

Most defaults stand beside their fields in `types.py`. Here are those that need more than a constant: some fields take
their default when they are zero or empty, not only when they are left out, and a profile's plugins are laid over the
default set.
"""

from typing import TypeVar

import msgspec
from msgspec.structs import replace

from podium.config.feature_gates import NO_GATES, Gate, Gates
from podium.config.merge import merge_plugins
from podium.config.types import (
    ClientConnection,
    ExtenderConfig,
    KubeSchedulerConfiguration,
    LeaderElection,
    PluginEntry,
    Plugins,
    PluginSet,
    SchedulerProfile,
)

S = TypeVar("S", bound=msgspec.Struct)

DEFAULT_SCHEDULER_NAME = "default-scheduler"

# The order is the running order at every extension point. DynamicResources stands before DefaultPreemption: giving an
# idle claim back is better than evicting a pod.
DEFAULT_PLUGINS = Plugins(
    multi_point=PluginSet(
        enabled=(
            PluginEntry(name="SchedulingGates"),
            PluginEntry(name="PrioritySort"),
            PluginEntry(name="NodeUnschedulable"),
            PluginEntry(name="NodeName"),
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


def default_plugins(gates: Gates) -> Plugins:
    """The default set with these gates on."""
    gated = [entry for gate, entries in _GATED_PLUGINS.items() if gate in gates for entry in entries]
    return Plugins(multi_point=PluginSet(enabled=(*DEFAULT_PLUGINS.multi_point.enabled, *gated)))


def with_defaults(config: KubeSchedulerConfiguration, gates: Gates = NO_GATES) -> KubeSchedulerConfiguration:
    """The configuration with nothing left open except `percentageOfNodesToScore`, where unset means something."""
    profiles = config.profiles or (SchedulerProfile(),)
    if len(profiles) == 1 and profiles[0].scheduler_name is None:
        # With several profiles each must say its name; validation asks for it.
        profiles = (replace(profiles[0], scheduler_name=DEFAULT_SCHEDULER_NAME),)
    contention, defaults = config.enable_contention_profiling, default_plugins(gates)
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
