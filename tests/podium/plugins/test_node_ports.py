from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.cluster import Nodes
from podium.framework import SKIP, Action, Code, Cycle, PluginError, Resource
from podium.plugins.node_ports import NodePorts
from tests.podium.plugins.ask import events_of, hint_of, refusals, refused
from tools.kit.builders import make_cluster, make_node, make_plugin, make_pod

REASON = "node(s) didn't have free ports for the requested pod ports"

Port = tuple[str, str, int]


def pod_with(*ports: Port, name: str = "p1", node: str = "", **more: Any) -> Any:
    wanted = [
        {"containerPort": 1, "hostIP": ip, "protocol": protocol, "hostPort": port} for ip, protocol, port in ports
    ]
    spec = {"containers": [{"name": "c", "image": "app", "ports": wanted}]}
    return make_pod(name, node=node, spec=spec, **more)


@pytest.mark.parametrize(
    ("used", "wanted", "conflict"),
    [
        (("0.0.0.0", "TCP", 80), ("10.0.0.1", "TCP", 80), True),
        (("0.0.0.0", "TCP", 80), ("", "UDP", 80), False),
        (("10.0.0.1", "TCP", 80), ("10.0.0.2", "TCP", 80), False),
        (("10.0.0.1", "TCP", 80), ("0.0.0.0", "TCP", 80), True),
        (("10.0.0.1", "TCP", 80), ("10.0.0.1", "TCP", 80), True),
        (("", "", 80), ("0.0.0.0", "TCP", 80), True),
        (("", "TCP", 80), ("", "TCP", 81), False),
        (("::", "TCP", 80), ("10.0.0.1", "TCP", 80), False),
    ],
)
def test_ports_conflict_on_one_node(used: Port, wanted: Port, conflict: bool) -> None:
    cluster = make_cluster([make_node("a"), make_node("b")], [pod_with(used, name="there", node="a")])
    plugin = make_plugin(NodePorts, cluster)
    expected = {"a": (Code.UNSCHEDULABLE, (REASON,))} if conflict else {}
    assert refused(refusals(plugin, pod_with(wanted), cluster)) == expected
    assert hint_of(plugin, Resource.POD)(pod_with(wanted), pod_with(used, node="a"), None) is conflict


def test_one_of_several_ports_taken_is_enough() -> None:
    cluster = make_cluster([make_node("a")], [pod_with(("", "TCP", 2), name="there", node="a")])
    found = refusals(make_plugin(NodePorts, cluster), pod_with(("", "TCP", 1), ("", "TCP", 2)), cluster)
    assert found["a"] is not None


def test_sidecars_hold_ports_and_ordinary_init_containers_do_not() -> None:
    port = {"containerPort": 1, "hostPort": 80}
    sidecar = {"name": "s", "restartPolicy": "Always", "ports": [port]}
    ordinary = {"name": "i", "ports": [port]}
    cluster = make_cluster([make_node("a")], [make_pod("there", node="a", spec={"initContainers": [sidecar]})])
    plugin = make_plugin(NodePorts, cluster)
    assert refusals(plugin, pod_with(("", "TCP", 80)), cluster)["a"] is not None
    assert plugin.pre_filter(Cycle(make_pod(spec={"initContainers": [ordinary]}), cluster)) == SKIP


def test_a_pod_without_host_ports_is_not_looked_at() -> None:
    cluster = make_cluster([make_node("a")])
    plugin = make_plugin(NodePorts, cluster)
    assert plugin.pre_filter(Cycle(pod_with(("", "TCP", 0)), cluster)) == SKIP


def test_filtering_without_pre_filter_is_an_error() -> None:
    cluster = make_cluster([make_node("a")])
    with pytest.raises(PluginError, match=r'^reading "PreFilterNodePorts" from cycleState: not found$'):
        make_plugin(NodePorts, cluster).filter(Cycle(pod_with(("", "TCP", 1)), cluster), Nodes(cluster))


PORTS = st.tuples(
    st.sampled_from(["", "0.0.0.0", "10.0.0.1", "10.0.0.2"]), st.sampled_from(["", "TCP", "UDP"]), st.integers(1, 3)
)


@given(st.lists(st.lists(PORTS, max_size=3), max_size=5), st.lists(PORTS, min_size=1, max_size=3))
def test_a_node_is_refused_when_any_two_ports_conflict(placed: list[list[Port]], wanted: list[Port]) -> None:
    nodes = [make_node(f"n{i}") for i in range(3)]
    pods = [pod_with(*ports, name=f"p{i}", node=f"n{i % 3}") for i, ports in enumerate(placed)]
    cluster = make_cluster(nodes, pods)

    def clash(one: Port, other: Port) -> bool:
        (ip, protocol, port), (other_ip, other_protocol, other_port) = one, other
        ips = {ip or "0.0.0.0", other_ip or "0.0.0.0"}
        same = port == other_port and (protocol or "TCP") == (other_protocol or "TCP")
        return same and (len(ips) == 1 or "0.0.0.0" in ips)

    expected = {
        f"n{i % 3}" for i, ports in enumerate(placed) if any(clash(one, other) for one in ports for other in wanted)
    }
    assert set(refused(refusals(make_plugin(NodePorts, cluster), pod_with(*wanted), cluster))) == expected


def test_events() -> None:
    plugin = make_plugin(NodePorts, make_cluster([]))
    assert events_of(plugin) == [(Resource.POD, Action.DELETE), (Resource.NODE, Action.ADD)]


def test_a_pod_that_left_wakes_only_if_it_had_a_node_or_was_promised_one() -> None:
    hint = hint_of(make_plugin(NodePorts, make_cluster([])), Resource.POD)
    wanted = pod_with(("", "TCP", 80))
    assert not hint(wanted, pod_with(("", "TCP", 80)), None)
    assert hint(wanted, pod_with(("", "TCP", 80), status={"nominatedNodeName": "a"}), None)
    assert not hint(wanted, make_pod(node="a"), None)
