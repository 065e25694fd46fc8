"""Describes simulated devices, and makes the DeviceClass and the ResourceSlices that a driver publishes for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

import msgspec

from podium.kube.json_object import JsonObject

DRIVER: Final = "gpu.podium.dev"
API_VERSION: Final = "resource.k8s.io/v1"
MOST_IN_SLICE: Final = 128
MOST_ON_NODE: Final = 10_000
_TYPES: Final = ("int", "bool", "string", "version")


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
