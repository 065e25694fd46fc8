"""AppGroups and NetworkTopologies as the API writes them, and the cluster of the specification's example."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from podium.cluster import Cluster
from podium.kube import Node, Pod
from podium_plugins import app_group
from podium_plugins.app_group import APP_GROUP_LABEL, WORKLOAD_LABEL
from podium_plugins.network_overhead import network_topology
from podium_plugins.network_overhead.network_topology import REGION, ZONE
from tools.kit.builders import make_node, make_pod

Pairs = Mapping[tuple[str, str], int]

PLACES = {
    f"N{number}": place
    for number, place in enumerate(
        [("W", "z1")] * 2 + [("W", "z2")] * 2 + [("E", "z3")] * 2 + [("E", "z4")] * 2, start=1
    )
}
REGIONS = {("W", "E"): 20, ("E", "W"): 20}
ZONES = {("z1", "z2"): 5, ("z2", "z1"): 5, ("z3", "z4"): 10, ("z4", "z3"): 10}


def located(name: str, region: str = "", zone: str = "", **rest: Any) -> Node:
    labels = {key: value for key, value in ((REGION, region), (ZONE, zone)) if value}
    return make_node(name, labels=labels, **rest)


def example_nodes() -> list[Node]:
    return [located(name, *place) for name, place in PLACES.items()]


def make_topology(regions: Pairs = REGIONS, zones: Pairs = ZONES, *, weights: str = "UserDefined") -> dict[str, Any]:
    lists = [{"topologyKey": key, "originList": _origins(pairs)} for key, pairs in ((REGION, regions), (ZONE, zones))]
    return {
        "apiVersion": "networktopology.diktyo.x-k8s.io/v1alpha1",
        "kind": "NetworkTopology",
        "metadata": {"name": "nt-default", "namespace": "default"},
        "spec": {"configmapName": "netperf", "weights": [{"name": weights, "topologyList": lists}]},
    }


def _origins(pairs: Pairs) -> list[dict[str, Any]]:
    by_origin: dict[str, list[dict[str, Any]]] = {}
    for (origin, destination), cost in pairs.items():
        by_origin.setdefault(origin, []).append({"destination": destination, "networkCost": cost})
    return [{"origin": origin, "costList": costs} for origin, costs in by_origin.items()]


def workload(selector: str) -> dict[str, Any]:
    return {"kind": "Deployment", "name": selector, "selector": selector, "apiVersion": "apps/v1"}


def make_app_group(
    dependencies: Mapping[str, Iterable[tuple[str, int]]], order: Iterable[str] = (), name: str = "app"
) -> dict[str, Any]:
    """`dependencies`: workload → the workloads it depends on, each with the cost it may have."""
    workloads = [
        {
            "workload": workload(each),
            "dependencies": [{"workload": workload(on), "maxNetworkCost": cost} for on, cost in needs],
        }
        for each, needs in dependencies.items()
    ]
    indexes = {each: index for index, each in enumerate(order, start=1)}
    places = [{"workload": workload(each), "index": indexes[each]} for each in sorted(indexes)]
    return {
        "apiVersion": "appgroup.diktyo.x-k8s.io/v1alpha1",
        "kind": "AppGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "numMembers": max(len(workloads), 1),
            "topologySortingAlgorithm": "KahnSort",
            "workloads": workloads,
        },
        **({"status": {"topologyOrder": places}} if places else {}),
    }


def set_topology(cluster: Cluster, item: Any) -> None:
    cluster.objects.custom_store(network_topology.RESOURCE).set("default/nt-default", item)


def set_app_group(cluster: Cluster, item: Any, name: str = "app") -> None:
    cluster.objects.custom_store(app_group.RESOURCE).set(f"default/{name}", item)


def of_workload(name: str, selector: str, *, group: str = "app", **rest: Any) -> Pod:
    return make_pod(name, labels={APP_GROUP_LABEL: group, WORKLOAD_LABEL: selector}, **rest)
