"""The plugins: kube-scheduler's own set, and how all others are found.

In-tree plugins are listed here; others come from the entry-point group `podium.plugins` of any installed package, or by
`module:Class` or `file.py` on the command line. All are looked up by name and enabled in a profile the same way.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from importlib.metadata import entry_points

from podium.framework.declarations import does_nothing, wrong_declarations
from podium.framework.kinds import wrong_kinds
from podium.framework.misspelt import misspelt
from podium.framework.plugin import Plugin
from podium.plugins.plugin_source import PluginLoadError, described, load_source, source_of

__all__ = ["ENTRY_POINTS", "IN_TREE", "PluginLoadError", "installed_plugins", "load_named", "load_registry", "register"]

ENTRY_POINTS = "podium.plugins"

IN_TREE = {
    "SchedulingGates": "scheduling_gates",
    "PrioritySort": "priority_sort",
    "NodeUnschedulable": "node_unschedulable",
    "NodeName": "node_name",
    "TaintToleration": "taint_toleration",
    "NodeAffinity": "node_affinity",
    "NodePorts": "node_ports",
    "NodeResourcesFit": "node_resources_fit",
    "VolumeRestrictions": "volume_restrictions",
    "NodeVolumeLimits": "node_volume_limits",
    "VolumeBinding": "volume_binding",
    "VolumeZone": "volume_zone",
    "PodTopologySpread": "pod_topology_spread",
    "InterPodAffinity": "inter_pod_affinity",
    "DynamicResources": "dynamic_resources",
    "DefaultPreemption": "default_preemption",
    "NodeResourcesBalancedAllocation": "node_resources_balanced_allocation",
    "ImageLocality": "image_locality",
    "DefaultBinder": "default_binder",
    "NodeDeclaredFeatures": "node_declared_features",
    "GangScheduling": "gang_scheduling",
    "TopologyPlacementGenerator": "topology_placement_generator",
    "PodGroupPodsCount": "pod_group_pods_count",
    "NetworkTraffic": "network_traffic",
    "PrometheusScore": "prometheus_score",
    "TargetLoadPacking": "target_load_packing",
    "LoadVariationRiskBalancing": "load_variation_risk_balancing",
    "LowRiskOverCommitment": "low_risk_over_commitment",
    "Peaks": "peaks",
    "NodeResourcesAllocatable": "node_resources_allocatable",
    "SafeOverload": "safe",
    "SafeBalance": "safe",
    "Congestion": "congestion",
    "PigeonHoling": "pigeon",
    "RewardBias": "reward",
    "MeasuredLoad": "measured_load",
    "CapacityScheduling": "capacity_scheduling",
    "PreemptionToleration": "preemption_toleration",
    "CrossNodePreemption": "cross_node_preemption",
    "GpuShare": "gpu_share",
    "GpuRandom": "gpu_share",
    "GpuDotProd": "gpu_share",
    "GpuPacking": "gpu_share",
    "GpuClustering": "gpu_share",
    "GpuBestFit": "gpu_share",
    "GpuFGD": "gpu_share",
    "LearnedScore": "learned",
    "OnlineScore": "online",
    "Coscheduling": "coscheduling",
    "NetworkOverhead": "network_overhead",
    "TopologicalSort": "topological_sort",
    "SySched": "sy_sched",
    "NodeMetadata": "node_metadata",
    "PodState": "pod_state",
    "QOSSort": "qos_sort",
    "NodeResourceTopologyMatch": "node_resource_topology_match",
    "QosAware": "qos_aware",
    "Template": "template",
}
"""Plugin name → module: kube-scheduler's in its order, then those no profile has by itself."""


def load_registry(extra: Iterable[str] = ()) -> dict[str, type[Plugin]]:
    """Every plugin by name: in-tree, installed, and those given as `module:Class` or `file.py`."""
    registry = {name: _in_tree(name, module) for name, module in IN_TREE.items()}
    for point in entry_points(group=ENTRY_POINTS):
        try:
            found = point.load()
        except Exception as error:  # whatever the module does while it is loaded
            raise PluginLoadError(
                f'installed plugin "{point.name}" ({point.value}) cannot be loaded: {described(error)}'
            ) from error
        register(registry, found, f"installed plugin {point.value}")
    load_named(registry, extra)
    return registry


def installed_plugins() -> dict[type[Plugin], str]:
    """The plugins of entry points, each with the package that brings it."""
    return {point.load(): point.dist.name for point in entry_points(group=ENTRY_POINTS) if point.dist is not None}


def load_named(registry: dict[str, type[Plugin]], options: Iterable[str], *, again: bool = False) -> list[type[Plugin]]:
    """Add the plugins given as `module:Class` or `file.py`; with `again`, from their source as it is now."""
    made: list[type[Plugin]] = []
    for option in options:
        found = load_source(option, again=again)
        for each in found:
            which = f': plugin "{getattr(each, "__name__", each)}"' if len(found) > 1 else ""
            made.append(register(registry, each, f"--plugin {option}{which}"))
    return made


def _in_tree(name: str, module: str) -> type[Plugin]:
    plugin: type[Plugin] = getattr(importlib.import_module(f"podium.plugins.{module}"), name)
    return plugin


def register(registry: dict[str, type[Plugin]], found: object, source: str) -> type[Plugin]:
    """Add a plugin; `source` is what it came from, for messages."""
    if not (isinstance(found, type) and issubclass(found, Plugin)):
        raise PluginLoadError(f"{source} is not a Plugin class; derive it from podium.Plugin")
    mistakes = [*misspelt(found), *wrong_declarations(found)] or [*wrong_kinds(found)]
    mistakes = mistakes or [*does_nothing(found)]
    if mistakes:
        raise PluginLoadError(f"{source}: {'; '.join(mistakes)}")
    known = registry.get(found.name)
    if known is not None and known is not found and not _same_source(known, found):
        raise PluginLoadError(f'{source}: a plugin named "{found.name}" exists already; {_way_out(known)}')
    registry[found.name] = found
    return found


def _same_source(known: type[Plugin], found: type[Plugin]) -> bool:
    """Whether both are one class of one file, as where the file of an installed plugin is given with `--plugin`."""
    return known.__qualname__ == found.__qualname__ and source_of(known) == source_of(found) is not None


def _way_out(known: type[Plugin]) -> str:
    where = None if known.name in IN_TREE else source_of(known)
    return "set another name" if where is None else f"it is that of {where}: set another name, or uninstall that one"
