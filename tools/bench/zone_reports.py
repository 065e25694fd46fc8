"""Gives every node eight NUMA zones, where a plugin of the configuration reads NodeResourceTopologies.

The zones share what the node offers in equal parts, of which different amounts are taken, so that no two nodes are in
one state. The kubelets align to a single NUMA node.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from kubecel.quantity import milli, units
from podium.engine.scheduler import Scheduler
from podium.kube import Node
from podium_plugins.node_resource_topology_match.topology_object import RESOURCE

ZONES: Final = 8
TAKEN: Final = 100
"""Less than so many thousandths of a core are taken of a zone."""
ATTRIBUTES: Final = [
    {"name": "topologyManagerPolicy", "value": "single-numa-node"},
    {"name": "topologyManagerScope", "value": "container"},
    {"name": "nodeTopologyPodsFingerprint", "value": "pfp0v001ef46db3751d8e999"},
]
"""The fingerprint is that of a node without pods."""


def report_zones(scheduler: Scheduler, nodes: Iterable[Node]) -> None:
    plugins = (plugin for runtime in scheduler.profiles.values() for plugin in runtime.plugins.values())
    if any(resource.partition("/")[0] == RESOURCE for plugin in plugins for resource in plugin.resources):
        for number, node in enumerate(nodes):
            scheduler.intake.set_custom(RESOURCE, node.name, _report(node, number))


def _report(node: Node, number: int) -> dict[str, Any]:
    offered = node.status.allocatable
    cpu, memory = milli(offered["cpu"]) // ZONES, units(offered["memory"]) // ZONES
    zones = [
        {
            "name": f"node-{zone}",
            "type": "Node",
            "resources": [
                _resource("cpu", f"{cpu}m", f"{cpu - (number * ZONES + zone) % TAKEN}m"),
                _resource("memory", str(memory), str(memory - (number * ZONES + zone) * 1024)),
            ],
            "costs": [{"name": f"node-{other}", "value": 10 if zone == other else 20} for other in range(ZONES)],
        }
        for zone in range(ZONES)
    ]
    return {"metadata": {"name": node.name}, "attributes": ATTRIBUTES, "zones": zones}


def _resource(name: str, amount: str, available: str) -> dict[str, str]:
    return {"name": name, "capacity": amount, "allocatable": amount, "available": available}
