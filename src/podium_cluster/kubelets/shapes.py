"""Describes embedded nodes, and makes the Node objects that they register as."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from kubecel.quantity import format_nano, parse
from podium.kube.json_object import JsonObject
from podium.kube.meta import format_time

VERSION = "v1.36.4"
CONDITIONS = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)


class NodeShape(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """`count` equal nodes, named "{name}-0", "{name}-1" …; zones are given to them in turn."""

    name: str = "node"
    count: int = 1
    cpu: str = "8"
    memory: str = "32Gi"
    pods: int = 110
    resources: dict[str, str] = {}
    """More to offer, e.g. {"nvidia.com/gpu": "4"}."""
    reserved: dict[str, str] = {}
    """What is not allocatable of the capacity, e.g. {"cpu": "200m"}."""
    zones: tuple[str, ...] = ("zone-a", "zone-b", "zone-c")
    region: str = "region-1"
    instance_type: str = "podium"
    arch: str = "amd64"
    os: str = "linux"
    labels: dict[str, str] = {}
    taints: tuple[dict[str, str], ...] = ()
    images: tuple[dict[str, Any], ...] = ()

    def names(self) -> Iterator[str]:
        for index in range(self.count):
            yield f"{self.name}-{index}"


def node_object(shape: NodeShape, name: str, index: int, now: float) -> JsonObject:
    """`index` counts all nodes of the cluster: addresses and zones follow it."""
    labels = {
        "kubernetes.io/hostname": name,
        "kubernetes.io/arch": shape.arch,
        "kubernetes.io/os": shape.os,
        "node.kubernetes.io/instance-type": shape.instance_type,
        "topology.kubernetes.io/region": shape.region,
    }
    if shape.zones:
        labels["topology.kubernetes.io/zone"] = shape.zones[index % len(shape.zones)]
    capacity = {"cpu": shape.cpu, "memory": shape.memory, "ephemeral-storage": "100Gi", "pods": str(shape.pods)}
    capacity |= shape.resources
    allocatable = dict(capacity)
    for resource, amount in shape.reserved.items():
        left = max(0, parse(capacity.get(resource, "0")) - parse(amount))
        allocatable[resource] = format_nano(left, binary=resource != "cpu")
    spec: JsonObject = {
        "podCIDR": pod_network(index),
        "podCIDRs": [pod_network(index)],
        "providerID": f"podium://{name}",
    }
    if shape.taints:
        spec["taints"] = [dict(taint) for taint in shape.taints]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**labels, **shape.labels}},
        "spec": spec,
        "status": {
            "capacity": capacity,
            "allocatable": allocatable,
            "conditions": conditions(now, now),
            "addresses": [
                {"type": "InternalIP", "address": address(index)},
                {"type": "Hostname", "address": name},
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": {
                "machineID": "",
                "systemUUID": "",
                "bootID": "",
                "kernelVersion": "6.12.0",
                "osImage": "Podium",
                "containerRuntimeVersion": "podium://1",
                "kubeletVersion": VERSION,
                "kubeProxyVersion": "",
                "operatingSystem": shape.os,
                "architecture": shape.arch,
            },
            "images": [dict(image) for image in shape.images],
        },
    }


def conditions(heartbeat: float, transition: float) -> list[JsonObject]:
    times = {"lastHeartbeatTime": format_time(heartbeat), "lastTransitionTime": format_time(transition)}
    return [
        {"type": kind, "status": status, **times, "reason": reason, "message": message}
        for kind, status, reason, message in CONDITIONS
    ]


def address(index: int) -> str:
    return f"172.{16 + index // 65_536 % 16}.{index // 256 % 256}.{index % 256}"


def pod_network(index: int) -> str:
    return f"{pod_prefix(index)}.0/24"


def pod_prefix(index: int) -> str:
    return f"10.{index // 256 % 256}.{index % 256}"
