"""Selectors that are interrupted when the time of a node is over: how the search ends, and what is not remembered."""

from collections.abc import Callable

import msgspec
import pytest

from podium.kube.decode import decode_json
from podium.kube.devices import Allocation, DeviceClass, ResourceClaim, ResourceSlice
from podium.kube.meta import ObjectMeta
from podium.kube.node import Node
from podium.placement.devices.allocator import allocate
from podium.placement.devices.inventory import DeviceInventory
from podium.placement.devices.preparation import AllocationError
from podium.placement.devices.tally import DeviceTally
from tests.podium.placement.devices.worlds import claim, device, device_class, request, selectors, slice_

LOOP = "lists.range(1000).all(i, i >= 0)"
NODE = Node(metadata=ObjectMeta(name="n1"))


def after(looks: int) -> Callable[[], bool]:
    """A time that is over after it was looked at so many times."""
    seen = iter(range(looks))
    return lambda: next(seen, None) is None


def found(inventory: DeviceInventory, expression: str, expired: Callable[[], bool]) -> list[Allocation] | None:
    asked = decode_json(ResourceClaim, msgspec.json.encode(claim(request(selectors=selectors(expression)))))
    classes = {"c": decode_json(DeviceClass, msgspec.json.encode(device_class()))}
    return allocate(NODE, inventory.pools(NODE), [asked], classes, DeviceTally(), expired=expired)


def inventory() -> DeviceInventory:
    return DeviceInventory([decode_json(ResourceSlice, msgspec.json.encode(slice_("s", device("d1"))))])


@pytest.mark.parametrize("expression", [LOOP, f"{LOOP} || true", f"!({LOOP})"])
def test_a_selector_is_interrupted_and_gets_its_answer_when_there_is_time(expression: str) -> None:
    devices = inventory()
    with pytest.raises(TimeoutError):
        found(devices, expression, after(5))
    answer = found(devices, expression, lambda: False)
    assert (answer is None) == expression.startswith("!")


def test_an_error_from_an_interrupted_evaluation_is_not_remembered() -> None:
    devices = inventory()
    expression = f'device.attributes["x.example.com"].x == 1 || {LOOP}'
    with pytest.raises(AllocationError, match="CEL runtime error: no such key: x"):
        found(devices, expression, after(5))
    assert found(devices, expression, lambda: False) is not None
