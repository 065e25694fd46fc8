"""NodeResourceTopologies, Guaranteed pods, and a scheduler that places them by zones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from podium.cluster import Cluster
from podium.kube import Pod
from podium_plugins.node_resource_topology_match import NodeResourceTopologyMatch
from podium_plugins.node_resource_topology_match.fingerprint import fingerprint
from podium_plugins.node_resource_topology_match.topology_object import RESOURCE
from tests.podium.engine.schedulers import World
from tools.kit.builders import make_cluster, make_node, make_plugin, make_pod

GPU = "example.com/gpu"
NAME = "NodeResourceTopologyMatch"
Amounts = Mapping[str, str | int]
OVER_RESERVE = {"cacheResyncPeriodSeconds": 5}


def make_zone(number: int, available: Amounts, costs: Mapping[int, int] | None = None, **fields: Any) -> dict[str, Any]:
    resources = [
        {"name": name, "capacity": amount, "allocatable": amount, "available": amount}
        for name, amount in available.items()
    ]
    listed = [{"name": f"node-{other}", "value": cost} for other, cost in (costs or {}).items()]
    return {"name": f"node-{number}", "type": "Node", "resources": resources, "costs": listed, **fields}


def make_report(
    zones: Iterable[Amounts] | Sequence[dict[str, Any]],
    *,
    name: str = "n1",
    policy: str | None = "single-numa-node",
    scope: str | None = "container",
    pods: Iterable[Pod] | None = None,
    attributes: Mapping[str, str] | None = None,
    **fields: Any,
) -> dict[str, Any]:
    """A NodeResourceTopology; with `pods` it carries their fingerprint."""
    named = {"topologyManagerPolicy": policy, "topologyManagerScope": scope, **(attributes or {})}
    if pods is not None:
        named["nodeTopologyPodsFingerprint"] = fingerprint(pods)
    made = [zone if "type" in zone else make_zone(number, zone) for number, zone in enumerate(zones)]
    return {
        "apiVersion": "topology.node.k8s.io/v1alpha2",
        "kind": "NodeResourceTopology",
        "metadata": {"name": name},
        "attributes": [{"name": key, "value": value} for key, value in named.items() if value is not None],
        "zones": made,
        **fields,
    }


def container(name: str, amounts: Amounts, *, guaranteed: bool = True, **fields: Any) -> dict[str, Any]:
    resources = {"requests": dict(amounts), **({"limits": dict(amounts)} if guaranteed else {})}
    return {"name": name, "image": "app", "resources": resources, **fields}


def zone_pod(
    *containers: Amounts | dict[str, Any],
    name: str = "p1",
    guaranteed: bool = True,
    init: Sequence[dict[str, Any]] = (),
    node: str = "",
    phase: str = "",
    scheduler: str = "default-scheduler",
    **options: Any,
) -> Pod:
    """A pod with one container for each set of amounts; they are requests and limits, unless it is not Guaranteed."""
    made = [
        each if "name" in each else container(f"c{number}", each, guaranteed=guaranteed)
        for number, each in enumerate(containers, start=1)
    ]
    spec = {"containers": made, "initContainers": list(init), "schedulerName": scheduler, **options.pop("spec", {})}
    return make_pod(name, node=node, spec=spec, status={"phase": phase} if phase else {}, **options)


def zone_cluster(reports: Mapping[str, dict[str, Any] | None], *, cpu: int = 64, gpus: int = 8) -> Cluster:
    """A cluster of large nodes with these reports."""
    offered: dict[str, str | int] = {GPU: gpus} if gpus else {}
    cluster = make_cluster([make_node(name, cpu=cpu, memory="256Gi", allocatable=offered) for name in reports])
    for name, report in reports.items():
        if report is not None:
            cluster.objects.custom_store(RESOURCE).set(name, report)
    return cluster


def zone_plugin(cluster: Cluster, **args: Any) -> NodeResourceTopologyMatch:
    return make_plugin(NodeResourceTopologyMatch, cluster, **args)


class ZoneWorld(World):
    """A scheduler with NodeResourceTopologyMatch and large nodes with 8 gpus."""

    def __init__(
        self, reports: Mapping[str, dict[str, Any] | None], *others: str, args: Mapping[str, Any], **options: Any
    ) -> None:
        nodes = [make_node(name, cpu=64, memory="256Gi", allocatable={GPU: 8}) for name in reports]
        plugins = (*others, "NodeResourcesFit", NAME)
        super().__init__(*plugins, nodes=nodes, args={NAME: args}, **options)
        for name, report in reports.items():
            if report is not None:
                self.set_report(report, name)

    def set_report(self, report: dict[str, Any] | None, name: str = "n1") -> None:
        self.intake.set_custom(RESOURCE, name, report)

    @property
    def plugin(self) -> NodeResourceTopologyMatch:
        plugin = self.scheduler.profiles["default-scheduler"].plugins[NAME]
        assert isinstance(plugin, NodeResourceTopologyMatch)
        return plugin
