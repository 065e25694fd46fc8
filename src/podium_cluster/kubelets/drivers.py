"""Publishes the devices of embedded nodes, as a driver on each node does: ResourceSlices, and a class to ask for them.

A pool that is there already and offers the same is left alone; one that offers something else gets the next generation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.errors import StatusError
from podium_cluster.apiserver.kinds import NODE, built_in
from podium_cluster.kubelets.device_shapes import API_VERSION, DeviceShape, class_object, pools_of, slice_objects

CLASS = built_in(API_VERSION, "DeviceClass")
SLICE = built_in(API_VERSION, "ResourceSlice")


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
