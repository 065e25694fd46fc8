"""Devices that contradict each other, thousands of them, and selectors that take long: bounded, and said in words."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec
import pytest

from kubecel import compile_selector
from podium.kube.decode import decode_json
from podium.kube.devices import DeviceClass, ResourceClaim, ResourceSlice
from podium.kube.node import Node
from podium.placement.devices import DeviceInventory, DeviceTally, allocate
from podium.placement.devices.allocator import CONTRADICTION
from tests.podium.placement.devices import worlds
from tests.podium.placement.devices.worlds import (
    Obj,
    World,
    claim,
    device,
    device_class,
    numbered,
    request,
    selectors,
    slice_,
)

LONG = f"[{', '.join(map(str, range(50)))}]"
SLOW = f"{LONG}.all(x, {LONG}.all(y, [0, 1, 2, 3, 4].all(z, x + y + z >= 0)))"
"""A selector that the API server takes, and that loops 12,500 times for each device."""


def many(count: int, **fields: Obj) -> list[Obj]:
    """Slices of one pool with so many devices, each slice as large as the API allows."""
    devices = [device(f"d{number}", **fields) for number in range(count)]
    parts = [devices[at : at + 128] for at in range(0, count, 128)]
    return [slice_(f"s{number}", *part, count=len(parts)) for number, part in enumerate(parts)]


def devices_in_time(slices: list[Obj], asked: Obj, expired: Callable[[], bool]) -> list[str] | None:
    node = decode_json(Node, b'{"metadata": {"name": "n1"}}')
    inventory = DeviceInventory([decode_json(ResourceSlice, msgspec.json.encode(each)) for each in slices])
    claims = [decode_json(ResourceClaim, msgspec.json.encode(asked))]
    classes = {"c": decode_json(DeviceClass, msgspec.json.encode(device_class()))}
    found = allocate(node, inventory.pools(node), claims, classes, DeviceTally(), expired=expired)
    return None if found is None else [result.device for result in found[0].devices.results]


def test_the_slow_selector_is_one_that_the_api_server_takes() -> None:
    assert not compile_selector(SLOW).is_too_complex


@pytest.mark.parametrize(
    "asked",
    [
        request(selectors=selectors(f"!({SLOW})")),
        request(selectors=selectors(f"!({SLOW})"), allocationMode="All"),
        request(firstAvailable=[worlds.ask(name="a", selectors=selectors(f"!({SLOW})"))]),
    ],
    ids=["count", "all", "first available"],
)
def test_selectors_that_take_long_end_when_the_time_of_the_node_is_over(asked: Obj) -> None:
    end = time.monotonic() + 0.5
    began = time.process_time()
    with pytest.raises(TimeoutError):
        devices_in_time(many(3000), claim(asked), lambda: time.monotonic() > end)
    assert time.process_time() - began < 30


def test_thousands_of_devices_on_a_node_are_searched_at_once() -> None:
    began = time.process_time()
    slices = many(5000, attributes={"m": {"int": 1}})
    world = World(
        slices, [claim(request(count=32, selectors=selectors(f'device.attributes["{worlds.DRIVER}"].m == 1')))]
    )
    found = world.devices()
    assert isinstance(found, list)
    assert len(found) == 32
    nothing = World(slices, [claim(request(selectors=selectors(f'device.attributes["{worlds.DRIVER}"].m == 2')))])
    assert nothing.devices() is None
    assert time.process_time() - began < 30


def thousands(value: Callable[[int], int]) -> list[Obj]:
    devices = [numbered(f"d{number}", value(number)) for number in range(2000)]
    return [slice_(f"s{at}", *devices[at : at + 125], count=16) for at in range(0, 2000, 125)]


def test_a_constraint_that_thousands_of_devices_break_ends_when_the_time_is_over() -> None:
    constraints = [{"distinctAttribute": f"{worlds.DRIVER}/m"}]
    asked = claim(request("a"), request("b"), request("c"), constraints=constraints)
    end = time.monotonic() + 0.5
    began = time.process_time()
    with pytest.raises(TimeoutError):
        devices_in_time(thousands(lambda _number: 1), asked, lambda: time.monotonic() > end)
    assert time.process_time() - began < 30


def test_thousands_of_devices_that_are_all_different_are_found_not_to_match() -> None:
    asked = claim(request(count=3), constraints=[{"matchAttribute": f"{worlds.DRIVER}/m"}])
    began = time.process_time()
    assert World(thousands(lambda number: number), [asked]).devices() is None
    assert time.process_time() - began < 30


@pytest.mark.parametrize(
    ("slices", "found"),
    [
        # One device in two slices of a pool: nothing of it can be given.
        ([slice_("a", device("d"), count=2), slice_("b", device("d"), count=2)], CONTRADICTION),
        # A slice is missing: wait for it.
        ([slice_("a", device("d"), count=2)], None),
        # A generation that went back leaves the pool incomplete.
        ([slice_("a", device("d"), count=2, generation=1), slice_("b", device("e"), count=2, generation=2)], None),
        # Both went back together: that is the pool as it is now.
        ([slice_("a", device("d"), count=2), slice_("b", device("e"), count=2)], ["r=d"]),
        # Another pool of the driver is not touched by that.
        ([slice_("a", device("d"), count=2), slice_("b", device("e"), pool="q")], ["r=q/e"]),
        # Slices that do not agree on how many there are.
        ([slice_("a", device("d"), count=1), slice_("b", device("e"), count=3)], None),
        (
            [slice_("a", device("d", consumesCounters=[{"counterSet": "none", "counters": {"m": {"value": "1"}}}]))],
            CONTRADICTION,
        ),
    ],
)
def test_slices_that_contradict_each_other(slices: list[Obj], found: list[str] | str | None) -> None:
    assert World(slices, [claim()]).devices() == found


def test_an_expression_that_cannot_be_read_names_its_place() -> None:
    wrong = World([slice_("s", device("d"))], [claim(request(selectors=selectors("device.driver ==")))])
    assert str(wrong.devices()).startswith("claim ns/cl: selector #0: CEL compile error: compilation failed: ERROR: ")
    of_class = World([slice_("s", device("d"))], [claim()], [device_class(selectors=selectors("true", "device.nope"))])
    assert "class c: selector #1: CEL compile error: compilation failed" in str(of_class.devices())
