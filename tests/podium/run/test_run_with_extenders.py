"""`podium run` with configured extenders, on a real API server."""

from __future__ import annotations

from typing import Any

from tests.podium.run.extender_server import ExtenderServer
from tools.testbed import ControlPlane
from tools.testbed.objects import make_node, make_pod


def extender(server: ExtenderServer, **more: Any) -> dict[str, Any]:
    return {"urlPrefix": server.url, "filterVerb": "filter", "bindVerb": "bind", **more}


def bind_with(plane: ControlPlane) -> Any:
    def bind(body: Any) -> Any:
        plane.client.bind(body["PodName"], body["Node"], body["PodNamespace"])
        return {}

    return bind


def test_extenders_see_whole_objects_choose_and_bind(empty_control_plane: ControlPlane) -> None:
    plane = empty_control_plane
    plane.client.create_all([make_node(f"n{number}") for number in range(3)])
    plane.client.create(make_pod("early", cpu="1"))

    def only_n1(body: Any) -> Any:
        return {"Nodes": {"items": [node for node in body["Nodes"]["items"] if node["metadata"]["name"] == "n1"]}}

    with ExtenderServer(filter=only_n1, bind=bind_with(plane)) as server:
        podium = plane.start_podium({"extenders": [extender(server)]})
        plane.client.create(make_pod("late", cpu="1"))
        plane.client.patch("v1/Node", "n2", {"metadata": {"labels": {"changed": "yes"}}}, "")
        pods = plane.client.poll("Pod", lambda items: all("nodeName" in each["spec"] for each in items))
        assert {each["spec"]["nodeName"] for each in pods} == {"n1"}
        plane.client.create(make_pod("last", cpu="1"))
        plane.client.poll("Pod", lambda items: len(items) == 3 and all("nodeName" in each["spec"] for each in items))
        podium.stop()
        nodes = {each["metadata"]["name"]: each for each in plane.client.list("v1/Node")}
        by_pod = {body["Pod"]["metadata"]["name"]: body for body in server.of("filter")}
    assert sorted(body["PodName"] for body in server.of("bind")) == ["early", "last", "late"]
    for body in by_pod.values():
        assert body["Pod"]["spec"]["containers"][0]["terminationMessagePath"], "no plugin reads that"
        assert not {"kind", "apiVersion"} & set(body["Pod"])
        assert "managedFields" not in body["Pod"]["metadata"]
    sent = {node["metadata"]["name"]: node for node in by_pod["last"]["Nodes"]["items"]}
    assert sent == nodes


def test_a_shadow_asks_extenders_but_never_to_bind(empty_control_plane: ControlPlane) -> None:
    plane = empty_control_plane
    plane.client.create_all([make_node("n1"), make_pod("p1", cpu="1")])
    with ExtenderServer(filter=lambda body: {"NodeNames": body["NodeNames"]}, bind=bind_with(plane)) as server:
        config = {"extenders": [extender(server, nodeCacheCapable=True)]}
        podium = plane.start_podium(config, flags=["--shadow", "--log-level=debug"])
        plane.client.poll("Pod", lambda _items: ": decided" in podium.log_path.read_text() and len(server.seen) >= 2)
        podium.stop(grace=20.0)
    assert server.of("bind") == []
    assert "nodeName" not in plane.client.list("Pod")[0]["spec"]


def test_certificates_that_cannot_be_read_are_told_before_anything_starts(empty_control_plane: ControlPlane) -> None:
    plane = empty_control_plane
    config = {"extenders": [{"urlPrefix": "https://extender", "tlsConfig": {"caFile": "/nowhere/ca.pem"}}]}
    podium = plane.start_podium(config, wait=False)
    plane.client.poll("v1/Namespace", lambda _items: not podium.running)
    assert podium.exit_code == 2
    told = "cannot be used (No such file or directory: /nowhere/ca.pem); look at its tlsConfig in extenders"
    assert podium.log_tail().splitlines()[-1].endswith(f"the certificates of extender https://extender {told}")
