"""Benchmarks of a configuration that reads NUMA zones have some to read."""

from __future__ import annotations

from podium_plugins.node_resource_topology_match.topology_object import RESOURCE, read_topology
from tests.podium.engine.schedulers import World
from tests.together.zone_worlds import NAME
from tools.bench.zone_reports import ZONES, report_zones
from tools.kit.builders import make_node


def test_every_node_has_eight_zones_in_a_state_of_its_own() -> None:
    nodes = [make_node(f"n{number}", cpu=4, memory="32Gi") for number in range(20)]
    world = World(NAME, nodes=nodes)
    report_zones(world.scheduler, nodes)
    found = [read_topology(each) for each in world.cluster.objects.custom_store(RESOURCE)]
    assert [len(each.zones) for each in found] == [ZONES] * 20
    assert all(each.settings.aligns and not each.problems for each in found)
    assert len({str(each.zones) for each in found}) == 20


def test_without_such_a_plugin_there_are_none() -> None:
    nodes = [make_node("n1")]
    world = World("NodeResourcesFit", nodes=nodes)
    report_zones(world.scheduler, nodes)
    assert not len(world.cluster.objects.custom_store(RESOURCE))
