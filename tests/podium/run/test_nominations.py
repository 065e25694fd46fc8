"""A pod that waits for its volumes says where it is going, under kube-scheduler and under Podium."""

from __future__ import annotations

from typing import Any

import pytest

from tools.testbed import ControlPlane
from tools.testbed.objects import make_node, make_pod

CLASS = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "slow"},
    "provisioner": "example.com/nobody",
    "volumeBindingMode": "WaitForFirstConsumer",
}
CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "claim", "namespace": "default"},
    "spec": {
        "storageClassName": "slow",
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    },
}


def with_claim(pod: dict[str, Any]) -> dict[str, Any]:
    pod["spec"]["volumes"] = [{"name": "v", "persistentVolumeClaim": {"claimName": "claim"}}]
    return pod


@pytest.mark.parametrize("scheduler", ["kube-scheduler", "podium"])
def test_a_pod_that_is_prepared_for_long_is_nominated(empty_control_plane: ControlPlane, scheduler: str) -> None:
    plane = empty_control_plane
    plane.client.create_all([CLASS, CLAIM, make_node("n1"), make_node("n2", cpu="1")])
    plane.start_scheduler() if scheduler == "kube-scheduler" else plane.start_podium()
    plane.client.create_all([with_claim(make_pod("slow", cpu="2")), make_pod("quick", cpu="1")])

    def there(items: list[dict[str, Any]]) -> bool:
        pods = {each["metadata"]["name"]: each for each in items}
        nominated = pods["slow"]["status"].get("nominatedNodeName") == "n1"
        return nominated and "nodeName" in pods["quick"]["spec"]

    pods = plane.client.poll("Pod", there)
    [slow] = [each for each in pods if each["metadata"]["name"] == "slow"]
    assert "nodeName" not in slow["spec"]
    assert not any(each["type"] == "PodScheduled" for each in slow["status"].get("conditions", []))
