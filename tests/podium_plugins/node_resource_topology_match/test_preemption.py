"""Dry runs of preemption: zones get back what victims hold there."""

from __future__ import annotations

from typing import Any

import pytest

from podium.kube import Pod
from podium_plugins.node_resource_topology_match.fingerprint import xxh64
from podium_plugins.node_resource_topology_match.victims import METADATA, VECTOR
from tests.together.zone_worlds import OVER_RESERVE, ZoneWorld, make_report, make_zone, zone_pod

ENABLED = {**OVER_RESERVE, "preemptionMode": "Enabled"}


def victim(name: str, cpu: int, **options: Any) -> Pod:
    return zone_pod({"cpu": cpu, "memory": "1Gi"}, name=name, node="n1", phase="Running", **options)


def report(
    pods: list[Pod], placed: dict[str, int], *, busiest: int = 1, free: tuple[int, int] = (0, 0)
) -> dict[str, Any]:
    """Two zones of 4 cpus; the pods named in `placed` are in their zones, all others in the busiest."""
    order = sorted(pods, key=lambda pod: xxh64(f"default\0{pod.name}\0c1".encode()))
    made = []
    for number in (0, 1):
        positions = [index for index, pod in enumerate(order) if placed.get(pod.name, busiest) == number]
        gaps = [position - before for before, position in zip([0, *positions], positions, strict=False)]
        vector = "" if number == busiest else "npv0v001" + "".join(chr(0x21 + gap + (gap > 0)) for gap in gaps)
        zone = make_zone(number, {"cpu": free[number], "memory": "8Gi"}, attributes=[{"name": VECTOR, "value": vector}])
        for resource in zone["resources"]:
            resource["allocatable"] = 4 if resource["name"] == "cpu" else "16Gi"
        made.append(zone)
    metadata = f"npv0v001::ve=leb89::cc={len(pods)}::nn=2::bn={busiest}"
    return make_report(made, pods=pods, attributes={METADATA: metadata})


def world_with(pods: list[Pod], made: dict[str, Any], args: dict[str, Any]) -> ZoneWorld:
    world = ZoneWorld({"n1": None}, "DefaultPreemption", args=args)
    world.add(*pods)
    world.set_report(made)
    return world


def preemptor(cpu: int) -> Pod:
    return zone_pod({"cpu": cpu, "memory": "1Gi"}, name="vip", priority=1000)


def test_victims_give_their_zone_back() -> None:
    pods = [victim("a", 2), victim("b", 2), victim("c", 4)]
    world = world_with(pods, report(pods, {"a": 0, "b": 0, "c": 1}), ENABLED)
    world.attempt(preemptor(4))
    assert set(world.evicted) in ({"c"}, {"a", "b"})


def test_only_victims_of_one_zone_help() -> None:
    pods = [victim("a", 2), victim("b", 2, priority=2000), victim("c", 2), victim("d", 2, priority=2000)]
    world = world_with(pods, report(pods, {"a": 0, "b": 0, "c": 1, "d": 1}), ENABLED)
    world.attempt(preemptor(4))
    assert world.evicted == [], "4 cpus would be free, but in two zones"
    world.attempt(zone_pod({"cpu": 2, "memory": "1Gi"}, name="smaller", priority=1000))
    assert len(world.evicted) == 1


@pytest.mark.parametrize("args", [OVER_RESERVE, {}, {"discardReservedNodes": True, "preemptionMode": "Enabled"}])
def test_without_the_mode_nothing_is_given_back(args: dict[str, Any]) -> None:
    pods = [victim("a", 4), victim("b", 4)]
    world = world_with(pods, report(pods, {"a": 0, "b": 1}), args)
    world.attempt(preemptor(4))
    assert world.evicted == []


def test_without_placement_nothing_is_given_back() -> None:
    pods = [victim("a", 4), victim("b", 4)]
    zones: list[dict[str, str | int]] = [{"cpu": 0, "memory": "8Gi"}] * 2
    world = world_with(pods, make_report(zones, pods=pods), ENABLED)
    world.attempt(preemptor(4))
    assert world.evicted == []


def test_more_than_a_zone_has_is_not_believed() -> None:
    pods = [victim("a", 4)]
    world = world_with(pods, report(pods, {"a": 0}, free=(3, 0)), ENABLED)
    world.attempt(preemptor(4))
    assert world.evicted == []
    assert (
        "eviction simulation in NRT is not possible:resource release request exceeds NUMA allocatable" in world.message
    )


def test_victims_without_anything_of_their_own_are_no_help() -> None:
    pods = [victim("a", 4), victim("b", 4)]
    shared = zone_pod({"cpu": "1500m", "memory": 0}, name="shared", node="n1", phase="Running")
    made = report(pods, {"a": 0, "b": 1})
    world = world_with([*(victim(pod.name, 4, priority=2000) for pod in pods), shared], made, ENABLED)
    world.attempt(preemptor(4))
    assert world.evicted == []


def test_victims_that_no_report_covers_give_their_reservation_back() -> None:
    zones: list[dict[str, str | int]] = [{"cpu": 4, "memory": "8Gi"}, {"cpu": 4, "memory": "8Gi"}]
    world = ZoneWorld({"n1": make_report(zones, pods=[])}, "DefaultPreemption", args=ENABLED)
    world.attempt(zone_pod({"cpu": 3, "memory": "1Gi"}, name="early"))
    assert world.node_of("early") == "n1"
    world.attempt(preemptor(4))
    assert world.evicted == ["early"]
    row = world.cluster.row_of["n1"]
    assert world.plugin._zones.available_on("cpu", row) == [1000, 1000], "the dry run left nothing behind"


def test_a_nominated_pod_has_its_room_in_the_zones() -> None:
    zones: list[dict[str, str | int]] = [{"cpu": 4, "memory": "8Gi"}]
    world = ZoneWorld({"n1": make_report(zones, pods=[])}, "DefaultPreemption", args=ENABLED)
    world.slow_evictions = True
    world.attempt(zone_pod({"cpu": 3, "memory": "1Gi"}, name="early"), preemptor(4))
    assert world.evicted == ["early"]
    world.attempt(zone_pod({"cpu": 1, "memory": "1Gi"}, name="late"))
    assert world.node_of("late") is None
