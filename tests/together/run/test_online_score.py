"""OnlineScore in the scheduler of `podium up`: rewards change where pods go, and are kept in a ConfigMap."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from podium.framework.pod_outcomes import REWARD
from tests.podium.run.crowd import until
from tests.podium_cluster.up.up_process import PodiumUp
from tools.testbed.apiclient import ApiClient, ApiError
from tools.testbed.objects import make_node, make_pod

LOAD = "example.com/load"
FARES = {"a": "0.9", "b": "0.2"}
"""What pods say of the nodes; a has more load, so without rewards b is preferred."""


def config(folder: Path) -> str:
    args = {
        "source": {"kind": "annotations", "refreshInterval": "1s", "maxAge": "10m"},
        "metrics": [{"name": "load", "query": LOAD, "full": 100}],
        "classLabel": "pool",
        "fewRewards": 5,
        "mostWidth": 1,
        "refresh": "10ms",
        "deadline": "10s",
        "namespace": "default",
        "stateFile": str(folder / "state.json"),
    }
    profile = {
        "schedulerName": "default-scheduler",
        "plugins": {"multiPoint": {"enabled": [{"name": "OnlineScore", "weight": 100}]}},
        "pluginConfig": [{"name": "OnlineScore", "args": args}],
    }
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    file = folder / "online.yaml"
    file.write_text(yaml.safe_dump({**head, "profiles": [profile]}))
    return str(file)


def place(client: ApiClient, name: str) -> str:
    """Where a pod goes; then it says how it fares there."""
    client.create(make_pod(name, cpu="10m"))

    def bound(items: list[dict[str, Any]]) -> bool:
        return any(each["metadata"]["name"] == name and each["spec"].get("nodeName") for each in items)

    client.poll("Pod", bound)
    node: str = client.get("Pod", name)["spec"]["nodeName"]
    client.patch("Pod", name, {"metadata": {"annotations": {REWARD: FARES[node]}}})
    return node


def kept(client: ApiClient) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(client.get("ConfigMap", "podium-online-state")["data"]["state"])
    except ApiError:
        return {"models": []}
    return found


def test_rewards_change_where_pods_go_and_are_kept(tmp_path: Path) -> None:
    options = ("--port", "0", "--nodes", "0", "--workload", "none", "--config", config(tmp_path))
    with PodiumUp(*options, home=tmp_path) as up, ApiClient(up.url, ca_path=None, token="any") as client:
        for name, load in (("a", "30"), ("b", "10")):
            node = make_node(name, labels={"pool": name})
            node["metadata"]["annotations"] = {LOAD: load}
            client.create(node)
        went: list[str] = []

        def settled() -> bool:
            went.append(place(client, f"pod-{len(went)}"))
            return went[-4:] == ["a"] * 4

        until(settled, "pods go to the node on which they fare well", timeout=120.0)
        assert "b" in went, "measured load decided at first"
        until(lambda: bool(kept(client)["models"]), "what was learnt is in the ConfigMap", timeout=120.0)
        state = kept(client)
        assert state["models"][0]["rewards"] >= 5
        assert sorted(state["classes"]) == ["a", "b"]
        until((tmp_path / "state.json").exists, "and in the file")
        assert json.loads((tmp_path / "state.json").read_text())["features"] == state["features"]
        assert "Traceback" not in up.output
