"""`podium run` with RewardBias: pods of a type that fails on a node go elsewhere, also after a restart."""

from typing import Any

from tests.podium.run.crowd import until
from tools.testbed import Component, ControlPlane
from tools.testbed.objects import make_node, make_pod

PROFILE = {
    "schedulerName": "default-scheduler",
    "plugins": {"multiPoint": {"enabled": [{"name": "RewardBias", "weight": 1000}]}},
    "pluginConfig": [{"name": "RewardBias", "args": {"namespace": "default", "configMap": "rewards"}}],
}


def test_pods_avoid_the_node_where_their_like_failed_and_so_after_a_restart(empty_control_plane: ControlPlane) -> None:
    plane = empty_control_plane
    client = plane.client
    client.create_all([make_node("a"), make_node("b")])
    podium = plane.start_podium({"profiles": [PROFILE]})

    def place(name: str, kind: str, of: Component) -> str:
        client.create(make_pod(name, labels={"podtype": kind}))

        def bound(items: list[dict[str, Any]]) -> bool:
            return any(each["metadata"]["name"] == name and "nodeName" in each["spec"] for each in items)

        client.poll("Pod", bound)
        node: str = client.get("Pod", name)["spec"]["nodeName"]
        return node

    for number in range(3):
        client.create(make_pod(f"bad-{number}", labels={"podtype": "D"}, nodeName="a"))
        client.patch("Pod", f"bad-{number}", {"status": {"phase": "Failed"}}, subresource="status")
    # Lessons come by a watch of their own: a first pod may still be placed without them.
    tried = iter(range(100))
    until(lambda: place(f"early-{next(tried)}", "D", podium) == "b", "the lesson has come", podium)
    assert [place(f"d-{number}", "D", podium) for number in range(4)] == ["b"] * 4
    assert "a" in {place(f"e-{number}", "E", podium) for number in range(4)}

    podium.stop(grace=20.0)
    assert podium.exit_code == 0
    data = client.get("ConfigMap", "rewards")["data"]
    assert data["D"].startswith("a 0.729000 3 ")
    client.delete_all("Pod")
    again = plane.start_podium({"profiles": [PROFILE]})
    assert [place(f"again-{number}", "D", again) for number in range(4)] == ["b"] * 4
    again.stop(grace=20.0)
    assert client.get("ConfigMap", "rewards")["data"] == data
    client.delete("ConfigMap", "rewards")
