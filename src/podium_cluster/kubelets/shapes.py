"""Describes embedded nodes and simulated devices, and makes the objects that they register as: Nodes, and a DeviceClass
and the ResourceSlices that a driver publishes.

A driver on each node publishes its devices: ResourceSlices, and a class to ask for them. A pool that is there already
and offers the same is left alone; one that offers something else gets the next generation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

import msgspec

from kubecel.quantity import format_nano, parse
from podium.kube.json_object import JsonObject
from podium.kube.meta import format_time
from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.errors import StatusError
from podium_cluster.apiserver.kinds import NODE, built_in

DRIVER: Final = "gpu.podium.dev"
API_VERSION: Final = "resource.k8s.io/v1"
MOST_IN_SLICE: Final = 128
MOST_ON_NODE: Final = 10_000
_TYPES: Final = ("int", "bool", "string", "version")
CLASS = built_in(API_VERSION, "DeviceClass")
SLICE = built_in(API_VERSION, "ResourceSlice")


class DeviceShape(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    """`count` equal devices on each node whose name fits the pattern `nodes`, named "{name}-0", "{name}-1" …"""

    nodes: str = "*"
    count: int = 4
    name: str = "gpu"
    driver: str = DRIVER
    device_class: str = ""
    """The DeviceClass that selects the driver's devices; named as the driver unless it says otherwise."""
    attributes: dict[str, Any] = {}
    """Numbers, true or false, text; {"version": "1.2.3"} says the type too."""
    capacity: dict[str, str] = {}


def class_object(shape: DeviceShape) -> JsonObject:
    selector = {"cel": {"expression": f'device.driver == "{shape.driver}"'}}
    return {
        "apiVersion": API_VERSION,
        "kind": "DeviceClass",
        "metadata": {"name": shape.device_class or shape.driver},
        "spec": {"selectors": [selector]},
    }


def pools_of(shapes: Iterable[DeviceShape], node: str) -> dict[str, list[JsonObject]]:
    """The devices of a node for each driver: what one pool offers."""
    pools: dict[str, list[JsonObject]] = {}
    for shape in shapes:
        if not fnmatchcase(node, shape.nodes):
            continue
        pool = pools.setdefault(shape.driver, [])
        first = sum(device["name"].rpartition("-")[0] == shape.name for device in pool)
        pool += [_device(shape, number) for number in range(first, first + shape.count)]
    return pools


def slice_objects(driver: str, node: JsonObject, devices: Sequence[JsonObject], generation: int) -> list[JsonObject]:
    """A pool as slices that the node owns, each no larger than the API allows."""
    name, uid = node["metadata"]["name"], node["metadata"]["uid"]
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid, "controller": True}
    parts = [devices[start : start + MOST_IN_SLICE] for start in range(0, len(devices), MOST_IN_SLICE)]
    pool = {"name": name, "generation": generation, "resourceSliceCount": len(parts)}
    return [
        {
            "apiVersion": API_VERSION,
            "kind": "ResourceSlice",
            "metadata": {"name": f"{name}-{driver}-{number}", "ownerReferences": [owner]},
            "spec": {"driver": driver, "pool": pool, "nodeName": name, "devices": list(part)},
        }
        for number, part in enumerate(parts)
    ]


def _device(shape: DeviceShape, number: int) -> JsonObject:
    device: JsonObject = {"name": f"{shape.name}-{number}"}
    attributes = {"index": number, **shape.attributes}
    device["attributes"] = {name: _typed(value) for name, value in attributes.items()}
    if shape.capacity:
        device["capacity"] = {name: {"value": amount} for name, amount in shape.capacity.items()}
    return device


def _typed(value: Any) -> JsonObject:
    """
    >>> _typed("a100"), _typed(3), _typed(True), _typed({"version": "1.2.3"})
    ({'string': 'a100'}, {'int': 3}, {'bool': True}, {'version': '1.2.3'})
    """
    if isinstance(value, dict) and len(value) == 1 and next(iter(value)) in _TYPES:
        return value
    if isinstance(value, bool):
        return {"bool": value}
    return {"int": value} if isinstance(value, int) else {"string": str(value)}


def publish(api: EmbeddedApi, shapes: Sequence[DeviceShape], nodes: Iterable[str]) -> int:
    """The number of devices on these nodes; raises StatusError for what the API refuses."""
    for shape in shapes:
        wanted = class_object(shape)
        if api.store.get(CLASS, "", wanted["metadata"]["name"]) is None:
            api.create(CLASS, wanted)
    published = _published(api)
    count = 0
    for name in nodes:
        stored = api.store.get(NODE, "", name)
        if stored is None:
            continue
        for driver, devices in pools_of(shapes, name).items():
            _publish_pool(api, driver, stored.decode(), devices, published.get((driver, name), []))
            count += len(devices)
    return count


def _published(api: EmbeddedApi) -> dict[tuple[str, str], list[JsonObject]]:
    """The slices that there are, by driver and pool, in the order of their names."""
    found: dict[tuple[str, str], list[JsonObject]] = {}
    for each in sorted(api.list(SLICE), key=lambda each: each["metadata"]["name"]):
        found.setdefault((each["spec"]["driver"], each["spec"]["pool"]["name"]), []).append(each)
    return found


def _publish_pool(
    api: EmbeddedApi, driver: str, node: JsonObject, devices: list[JsonObject], before: list[JsonObject]
) -> None:
    generation = max((each["spec"]["pool"]["generation"] for each in before), default=0)
    if before and [device for each in before for device in each["spec"].get("devices") or ()] == devices:
        return
    wanted = {each["metadata"]["name"]: each for each in slice_objects(driver, node, devices, generation + 1)}
    for each in before:
        name = each["metadata"]["name"]
        if name in wanted:
            api.update(SLICE, {**each, "spec": wanted.pop(name)["spec"]})
        else:
            _delete(api, name)
    for each in wanted.values():
        api.create(SLICE, each)


def _delete(api: EmbeddedApi, name: str) -> None:
    try:
        api.delete(SLICE, "", name)
    except StatusError as error:
        if error.code != 404:
            raise


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
