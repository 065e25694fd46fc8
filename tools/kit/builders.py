"""Short ways to write the objects tests need; anything unusual goes in as plain data in the API's own words."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from podium.cluster import Cluster
from podium.framework import Handle, ManualClock, Plugin
from podium.framework.handle import Driver, EngineState
from podium.kube import Node, Pod
from podium.kube.versions import NEWEST, VersionRules
from podium.testing.memory_writer import MemoryWriter

T = TypeVar("T")
P = TypeVar("P", bound=Plugin)


def build(kind: type[T], data: Mapping[str, Any]) -> T:
    """An object of any kind from plain data as the API writes it."""
    return msgspec.convert(data, kind)


def make_node(
    name: str = "n1",
    *,
    cpu: str | int = 4,
    memory: str = "8Gi",
    pods: int = 110,
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
    allocatable: Mapping[str, str | int] | None = None,
    unschedulable: bool = False,
    images: Mapping[str, int] | None = None,
    annotations: Mapping[str, str] | None = None,
    features: Sequence[str] = (),
) -> Node:
    return build(
        Node,
        {
            "metadata": {"name": name, "uid": f"node-{name}", "labels": labels or {}, "annotations": annotations or {}},
            "spec": {"taints": list(taints), "unschedulable": unschedulable},
            "status": {
                "allocatable": {"cpu": cpu, "memory": memory, "pods": pods, **(allocatable or {})},
                "images": [{"names": [image], "sizeBytes": size} for image, size in (images or {}).items()],
                "declaredFeatures": list(features),
            },
        },
    )


def make_pod(
    name: str = "p1",
    *,
    namespace: str = "default",
    requests: Mapping[str, str | int] | None = None,
    labels: Mapping[str, str] | None = None,
    node: str = "",
    priority: int = 0,
    spec: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Pod:
    container = {"name": "c", "image": "app", "resources": {"requests": dict(requests or {})}}
    return build(
        Pod,
        {
            "metadata": {
                "name": name,
                "namespace": namespace,
                "uid": f"{namespace}-{name}",
                "labels": labels or {},
                **(metadata or {}),
            },
            "spec": {"containers": [container], "nodeName": node, "priority": priority, **(spec or {})},
            "status": status or {},
        },
    )


def make_cluster(nodes: Iterable[Node], pods: Iterable[Pod] = (), objects: Iterable[Any] = ()) -> Cluster:
    """A cluster with these nodes, pods placed on them (each must name its node), and other objects."""
    cluster = Cluster()
    for node in nodes:
        cluster.set_node(node)
    for pod in pods:
        cluster.set_pod(pod)
    for item in objects:
        store = cluster.objects.store_of(type(item))
        assert store is not None, f"no store for {type(item).__name__}"
        store.set(item.key, item)
    return cluster


def make_handle(cluster: Cluster, rules: VersionRules = NEWEST) -> Handle:
    return Handle(
        Driver(clock=ManualClock(1_000_000.0), writer=MemoryWriter(at_once=True), rng=random.Random(0)),
        EngineState(cluster=cluster),
        rules=rules,
    )


def make_plugin(kind: type[P], cluster: Cluster, **args: Any) -> P:
    """A plugin with arguments as a configuration would give them."""
    decoded = msgspec.convert(args, kind.Args) if kind.Args is not None else None
    return kind(decoded, make_handle(cluster))
