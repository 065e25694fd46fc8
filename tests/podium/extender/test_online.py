"""The agent `online` beside the real kube-scheduler: it learns where pods fare well, and keeps that."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from podium.framework.pod_outcomes import REWARD
from tests.podium.extender.beside_scheduler import entry, managed, metrics_of, start_extender, status_of
from tests.podium.run.crowd import until
from tools.testbed import Component, ControlPlane
from tools.testbed.objects import make_node, make_pod

pytestmark = pytest.mark.testbed
LOAD = "example.com/load"
FARES = {"a": "0.9", "b": "0.2"}
"""What pods say of the nodes; a has more load, so without rewards b is preferred."""


def config(folder: Path) -> Path:
    args = {
        "source": {"kind": "annotations", "refreshInterval": "1s", "maxAge": "10m"},
        "metrics": [{"name": "load", "query": LOAD, "full": 100}],
        "classLabel": "pool",
        "fewRewards": 5,
        "mostWidth": 1,
        "refresh": "10ms",
        "deadline": "10s",
        "namespace": "default",
    }
    file = folder / "online.yaml"
    profile = {"pluginConfig": [{"name": "OnlineScore", "args": args}]}
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    file.write_text(yaml.safe_dump({**head, "profiles": [profile]}))
    return file


def counted(extender: Component, metric: str, **labels: str) -> float:
    wanted = [f'{name}="{value}"' for name, value in labels.items()]
    lines = [line for line in metrics_of(extender) if line.startswith(metric + "{") and all(w in line for w in wanted)]
    return sum(float(line.rpartition(" ")[2]) for line in lines)


class Pods:
    """Pods that go through the agent, one by one."""

    def __init__(self, plane: ControlPlane) -> None:
        self._client = plane.client
        self._number = 0

    def place(self, reward: str | None = None) -> str:
        """Where the next pod goes; then it says how it fares: as given, or as pods on that node do."""
        self._number += 1
        name = f"pod-{self._number}"
        pod = make_pod(name, cpu="10m")
        resources: dict[str, Any] = pod["spec"]["containers"][0]["resources"]
        resources["requests"][managed("online")] = "1"
        resources["limits"] = {managed("online"): "1"}
        self._client.create(pod)

        def bound(items: list[dict[str, Any]]) -> bool:
            return any(each["metadata"]["name"] == name and each["spec"].get("nodeName") for each in items)

        self._client.poll("Pod", bound)
        node: str = self._client.get("Pod", name)["spec"]["nodeName"]
        word = FARES[node] if reward is None else reward
        self._client.patch("Pod", name, {"metadata": {"annotations": {REWARD: word}}})
        return node


def test_pods_come_to_go_where_they_fare_well_and_so_after_a_restart(
    empty_control_plane: ControlPlane, tmp_path: Path
) -> None:
    plane = empty_control_plane
    for name, load in (("a", "30"), ("b", "10")):
        node = make_node(name, labels={"pool": name})
        node["metadata"]["annotations"] = {LOAD: load}
        plane.client.create(node)
    file = config(tmp_path)
    extender = start_extender(plane, "online", "--config", file)
    until(lambda: _ready(extender), "load is known", extender)
    names = {"nodeCacheCapable": True}
    scheduler = plane.start_scheduler({"extenders": [entry("online", extender.url, "prioritize", **names)]})
    pods = Pods(plane)

    # What cannot be learnt from is refused and counted; the pod is placed all the same.
    assert pods.place("NaN") == "b", "by measured load"
    until(lambda: counted(extender, "podium_online_rewards_total", outcome="bad") == 1, "NaN is refused", extender)
    stranger = make_pod("stranger", nodeName="a")
    stranger["metadata"]["annotations"] = {REWARD: "1"}
    plane.client.create(stranger)
    until(lambda: counted(extender, "podium_online_rewards_total", outcome="unknown") == 1, "so is it", extender)

    went = [pods.place()]
    until(lambda: _settled(went, pods, extender), "pods go to a", extender, scheduler)
    assert went[0] == "b"
    assert counted(extender, "podium_online_decisions_total", source="few") >= 5
    assert counted(extender, "podium_online_decisions_total", source="model") >= 4

    until(lambda: counted(extender, "podium_online_rewards_total", outcome="learnt") == len(went), "learnt", extender)
    extender.stop(grace=20.0)
    assert extender.exit_code == 0
    state = json.loads(plane.client.get("ConfigMap", "podium-online-state")["data"]["state"])
    assert state["models"][0]["rewards"] == len(went)
    assert sorted(state["classes"]) == ["a", "b"]

    again = start_extender(plane, "online", "--config", file, port=int(extender.url.rpartition(":")[2]))
    until(lambda: _ready(again), "it answers", again)
    assert [pods.place() for _ in range(3)] == ["a"] * 3
    assert counted(again, "podium_online_decisions_total", source="model") == 3
    again.stop(grace=20.0)
    plane.client.delete("ConfigMap", "podium-online-state")


def _settled(went: list[str], pods: Pods, extender: Component) -> bool:
    """Whether four pods in a row went to a; each is learnt from before the next."""
    until(lambda: counted(extender, "podium_online_rewards_total", outcome="learnt") == len(went), "learnt", extender)
    went.append(pods.place())
    return went[-4:] == ["a"] * 4


def _ready(extender: Component) -> bool:
    return status_of(extender, "GET", "/readyz") == 200
