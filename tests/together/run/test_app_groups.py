"""AppGroups on a real API server: placed near their peers by cost, in topological order, whatever objects are wrong."""

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from podium.controllers.catalog import definitions
from tests.podium.run.crowd import until
from tests.together.network_worlds import PLACES, make_app_group, make_topology
from tools.testbed import Component, ControlPlane
from tools.testbed.apiclient import Object
from tools.testbed.objects import make_node, make_pod
from tools.testbed.podium import podium_environment

APP_GROUP = "appgroup.diktyo.x-k8s.io/v1alpha1/AppGroup"
TOPOLOGY = "networktopology.diktyo.x-k8s.io/v1alpha1/NetworkTopology"
EXAMPLE = Path(__file__).parents[3] / "examples" / "config" / "network-overhead.yaml"
CHAIN = {"p1": [("p2", 15), ("p3", 15)], "p2": [("p4", 15)], "p3": [("p4", 15)], "p4": []}


@pytest.fixture(scope="module")
def own_plane(testbed_programs: None) -> Iterator[ControlPlane]:
    topologies = definitions()["networktopologies"]
    _allow_any_number(topologies)  # older definitions have no minimum
    with ControlPlane() as plane:
        plane.client.create_all([definitions()["appgroups"], topologies])
        until(lambda: _serves(plane), "both kinds are served")
        yield plane


@pytest.fixture
def plane(own_plane: ControlPlane) -> Iterator[ControlPlane]:
    yield own_plane
    own_plane.stop_components()
    for kind in (APP_GROUP, TOPOLOGY):
        own_plane.client.delete_all(kind)
    own_plane.wipe()


def _allow_any_number(schema: Any) -> None:
    if isinstance(schema, dict):
        schema.pop("minimum", None)
        for each in schema.values():
            _allow_any_number(each)
    elif isinstance(schema, list):
        for each in schema:
            _allow_any_number(each)


def _serves(plane: ControlPlane) -> bool:
    try:
        return [plane.client.list(kind) for kind in (APP_GROUP, TOPOLOGY)] == [[], []]
    except Exception:
        return False


def start(plane: ControlPlane) -> Component:
    return plane.start_podium(yaml.safe_load(EXAMPLE.read_text()))


def start_controller(plane: ControlPlane) -> Component:
    command: list[str | Path] = [sys.executable, "-m", "podium", "controller", "--kubeconfig", plane.kubeconfig_path]
    flags = ["--controllers=appgroup", "--leader-elect=false", "--secure-port=0"]
    return plane.start_program(
        "podium-controller", [*command, *flags], ready="controller appgroup runs", environment=podium_environment()
    )


def create_nodes(plane: ControlPlane, cpu: str = "2", names: tuple[str, ...] = tuple(PLACES)) -> None:
    for name in names:
        region, zone = PLACES[name]
        labels = {"topology.kubernetes.io/region": region, "topology.kubernetes.io/zone": zone}
        plane.client.create(make_node(name.lower(), cpu=cpu, labels=labels))


def member(name: str, workload: str, cpu: str = "1", **spec: Any) -> Object:
    labels = {"appgroup.diktyo.x-k8s.io": "app", "appgroup.diktyo.x-k8s.io.workload": workload}
    return make_pod(name, cpu=cpu, labels=labels, **spec)


def placed(plane: ControlPlane) -> dict[str, str]:
    pods = plane.client.list("Pod")
    return {each["metadata"]["name"]: each["spec"]["nodeName"] for each in pods if each["spec"].get("nodeName")}


def message_of(plane: ControlPlane, name: str) -> str:
    conditions = plane.client.get("Pod", name)["status"].get("conditions", ())
    return next((str(each.get("message", "")) for each in conditions if each["type"] == "PodScheduled"), "")


def test_pods_fill_the_nodes_near_their_peer_and_go_nowhere_too_far(plane: ControlPlane) -> None:
    create_nodes(plane)
    plane.client.create_all([make_topology(), make_app_group(CHAIN)])
    plane.client.create(member("peer", "p2", nodeName="n1"))
    podium = start(plane)
    for number in range(3):  # n1 has room for one beside its peer, and costs nothing; n2 is in its zone
        plane.client.create(member(f"p1-{number}", "p1"))
        until(lambda count=number + 2: len(placed(plane)) == count, "it is bound", podium)  # type: ignore[misc]
    assert Counter(placed(plane).values()) == {"n1": 2, "n2": 2}
    for number in range(3, 7):
        plane.client.create(member(f"p1-{number}", "p1"))
    until(lambda: len(placed(plane)) == 8, "the other zone of the region is filled", podium)
    assert Counter(placed(plane).values()) == {"n1": 2, "n2": 2, "n3": 2, "n4": 2}
    plane.client.create(member("p1-7", "p1"))
    until(lambda: "Node n5 does not meet several network" in message_of(plane, "p1-7"), "it is refused", podium)
    assert "p1-7" not in placed(plane)
    plane.client.create(member("near-1", "p2", cpu="100m", nodeName="n5"))
    until(lambda: placed(plane).get("p1-7") == "n5", "a peer that comes there lets it go there, too", podium)
    plane.client.create(make_pod("plain", cpu="1"))  # only now: it might have taken the room there
    until(lambda: "plain" in placed(plane), "pods without an AppGroup go anywhere", podium)
    assert "Traceback" not in podium.log_text()


def test_pods_leave_the_queue_in_topological_order(plane: ControlPlane) -> None:
    """Room for two: the workloads that the controller put first get it, though they came last."""
    controller = start_controller(plane)
    group = make_app_group(CHAIN)
    group["spec"]["topologySortingAlgorithm"] = "ReverseKahn"
    plane.client.create_all([make_topology(), group])

    def ordered() -> bool:
        order = plane.client.get(APP_GROUP, "app").get("status", {}).get("topologyOrder", ())
        return [each["workload"]["name"] for each in sorted(order, key=lambda each: each["index"])] == [
            "p4",
            "p2",
            "p3",
            "p1",
        ]

    until(ordered, "the order is computed", controller)
    for workload in ("p1", "p3", "p2", "p4"):
        plane.client.create(member(workload, workload))
    create_nodes(plane, names=("N1",))
    podium = start(plane)
    until(lambda: len(placed(plane)) == 2, "two are bound", podium)
    until(lambda: all("Insufficient cpu" in message_of(plane, name) for name in ("p1", "p3")), "two wait", podium)
    assert placed(plane) == {"p4": "n1", "p2": "n1"}
    create_nodes(plane, names=("N3", "N5"))
    until(lambda: len(placed(plane)) == 4, "the others follow", podium)
    assert set(placed(plane).values()) == {"n1", "n3"}, "in the region of those they depend on"


def test_bad_objects_get_an_event_and_their_pods_are_placed(plane: ControlPlane) -> None:
    create_nodes(plane)
    bad = make_topology(zones={("z1", "z2"): -5}, regions={})
    circle = make_app_group({"p1": [("p2", 15)], "p2": [("p1", 15)]})
    twice = [{"workload": {"kind": "Pod", "name": "p1", "selector": "p1"}, "index": index} for index in (1, 2)]
    plane.client.create_all([bad, {**circle, "status": {"topologyOrder": twice}}])
    podium = start(plane)
    plane.client.create_all(
        [
            *(member(f"p1-{number}", "p1", cpu="100m") for number in range(2)),
            *(member(f"p2-{number}", "p2", cpu="100m") for number in range(2)),
            make_pod("lost", labels={"appgroup.diktyo.x-k8s.io": "missing"}),
        ]
    )
    until(lambda: len(placed(plane)) == 5, "all are bound", podium)

    def events() -> Counter[tuple[str, str, str]]:
        return Counter(
            (each["regarding"]["name"], each["reason"], each["note"][:30])
            for each in plane.client.list("events.k8s.io/v1/Event")
            if each["regarding"]["kind"] in ("AppGroup", "NetworkTopology")
        )

    expected = {
        ("app", "InvalidAppGroup", "status.topologyOrder names a workload twice"[:30]): 1,
        ("nt-default", "InvalidNetworkTopology", "the cost from z1 to z2 is -5 and"[:30]): 1,
    }
    until(lambda: events() == expected, "each is said once on the object", podium)
    assert "AppGroup missing: not found in default" in podium.log_text()
    plane.client.delete(TOPOLOGY, "nt-default")
    plane.client.create(member("p1-2", "p1", cpu="100m"))
    until(lambda: "p1-2" in placed(plane), "without a NetworkTopology pods go anywhere", podium)
    until(lambda: "NetworkTopology nt-default: not found in default" in podium.log_text(), "that is said", podium)
    assert "Traceback" not in podium.log_text()
