"""Gangs packed into one domain of a node label."""

from __future__ import annotations

from collections.abc import Mapping

from podium.kube import Node
from tests.together.gang_worlds import GangWorld, make_group, member, members
from tools.kit.builders import make_node, make_pod

KEY = "podium.dev/topology-key"
MODE = "podium.dev/topology-mode"


def zones(**sizes: int) -> list[Node]:
    """One-core nodes, so many in each zone."""
    return [make_node(f"{zone}-{i}", cpu=1, labels={"zone": zone}) for zone, size in sizes.items() for i in range(size)]


def zones_of(world: GangWorld) -> dict[str, int]:
    """How many pods were bound in each zone."""
    found: dict[str, int] = {}
    for _pod, node in world.bound:
        zone = node.partition("-")[0]
        found[zone] = found.get(zone, 0) + 1
    return found


def gang(world: GangWorld, number: int, minimum: int, annotations: Mapping[str, str]) -> None:
    world.set_group(make_group(minimum=minimum, annotations=annotations))
    world.add(*members(number))
    world.run()


def test_all_members_go_to_the_one_zone_that_takes_them() -> None:
    world = GangWorld(nodes=zones(z1=2, z2=3))
    gang(world, 3, 3, {KEY: "zone"})
    assert zones_of(world) == {"z2": 3}


def test_of_several_zones_the_tightest_is_filled() -> None:
    world = GangWorld(nodes=zones(z1=9, z2=3, z3=4))
    gang(world, 3, 3, {KEY: "zone"})
    assert zones_of(world) == {"z2": 3}


def test_a_zone_that_has_room_but_cannot_be_used_is_passed_over() -> None:
    nodes = zones(z1=3, z2=4)
    tainted = [
        make_node(node.name, cpu=1, labels=node.labels, taints=[{"key": "no", "effect": "NoSchedule"}])
        for node in nodes[:3]
    ]
    world = GangWorld(nodes=[*tainted, *nodes[3:]])
    gang(world, 3, 3, {KEY: "zone"})
    assert zones_of(world) == {"z2": 3}


def test_hard_no_zone_takes_all_so_none_starts() -> None:
    world = GangWorld(nodes=zones(z1=2, z2=2))
    gang(world, 3, 3, {KEY: "zone"})
    assert (world.bound, world.cluster.pods) == ([], {})
    message = world.messages()["pg-2"]
    assert message.startswith(
        "0/4 nodes are available: 2 Insufficient cpu, 2 node(s) were outside zone=z1, where the pod group is packed."
    )
    world.add(make_node("z2-9", cpu=1, labels={"zone": "z2"}))
    world.pass_time(2)
    world.run()
    assert zones_of(world) == {"z2": 3}


def test_soft_no_zone_takes_all_so_the_fewest_are_used() -> None:
    world = GangWorld(nodes=zones(z1=1, z2=3, z3=2))
    gang(world, 5, 5, {KEY: "zone", MODE: "soft"})
    assert zones_of(world) == {"z2": 3, "z3": 2}


def test_late_members_go_where_the_others_are() -> None:
    world = GangWorld(nodes=zones(z1=2, z2=4))
    gang(world, 2, 2, {KEY: "zone"})
    assert zones_of(world) == {"z1": 2}
    world.add(member("late", requests={"cpu": 1}))
    world.run()
    assert world.message.startswith(
        "0/6 nodes are available: 2 Insufficient cpu, 4 node(s) were outside zone=z1, where the pod group is packed."
    )


def test_a_label_that_no_node_has() -> None:
    world = GangWorld(nodes=zones(z1=3))
    gang(world, 2, 2, {KEY: "rack"})
    assert world.bound == []
    assert "3 node(s) had no label rack, which the pod group is packed by" in world.message


def test_others_are_not_confined() -> None:
    world = GangWorld(nodes=zones(z1=3, z2=1))
    gang(world, 3, 3, {KEY: "zone"})
    world.add(make_pod("single", requests={"cpu": 1}))
    world.run()
    assert zones_of(world) == {"z1": 3, "z2": 1}
