"""Gives every node eight NUMA zones, where a plugin of the configuration reads NodeResourceTopologies.

The zones share what the node offers in equal parts. The kubelets align to a single NUMA node.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from podium.engine.scheduler import Scheduler
from podium.kube import Node
from podium.kube.quantity import milli, units
from podium.plugins.node_resource_topology_match.topology_object import RESOURCE

ZONES: Final = 8
ATTRIBUTES: Final = [
    {"name": "topologyManagerPolicy", "value": "single-numa-node"},
    {"name": "topologyManagerScope", "value": "container"},
    {"name": "nodeTopologyPodsFingerprint", "value": "pfp0v001ef46db3751d8e999"},
]
"""The fingerprint is that of a node without pods."""


def report_zones(scheduler: Scheduler, nodes: Iterable[Node]) -> None:
    plugins = (plugin for runtime in scheduler.profiles.values() for plugin in runtime.plugins.values())
    if any(resource.partition("/")[0] == RESOURCE for plugin in plugins for resource in plugin.resources):
        for node in nodes:
            scheduler.intake.set_custom(RESOURCE, node.name, _report(node))


def _report(node: Node) -> dict[str, Any]:
    offered = node.status.allocatable
    amounts = {"cpu": f"{milli(offered['cpu']) // ZONES}m", "memory": str(units(offered["memory"]) // ZONES)}
    resources = [
        {"name": name, "capacity": amount, "allocatable": amount, "available": amount}
        for name, amount in amounts.items()
    ]
    zones = [
        {
            "name": f"node-{zone}",
            "type": "Node",
            "resources": resources,
            "costs": [{"name": f"node-{other}", "value": 10 if zone == other else 20} for other in range(ZONES)],
        }
        for zone in range(ZONES)
    ]
    return {"metadata": {"name": node.name}, "attributes": ATTRIBUTES, "zones": zones}
