"""Nodes in trouble: taints, silence, eviction, and pods of nodes that are gone."""

import asyncio
from typing import Any

import pytest

from podium_cluster.controllers.node_lifecycle import taints_for
from tests.podium_cluster.apiserver.embedded import Embedded, deployment, in_embedded_cluster, template

Object = dict[str, Any]


def taints(cluster: Embedded, node: str) -> list[tuple[str, str]]:
    found = cluster.get("Node", node).get("spec", {}).get("taints", [])
    return [(each["key"].removeprefix("node.kubernetes.io/"), each["effect"]) for each in found]


def places(cluster: Embedded) -> set[str]:
    return {p["spec"]["nodeName"] for p in cluster.running() if "deletionTimestamp" not in p["metadata"]}


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({"Ready": "True"}, []),
        ({"Ready": "False"}, [("not-ready", "NoSchedule"), ("not-ready", "NoExecute")]),
        ({"Ready": "Unknown"}, [("unreachable", "NoSchedule"), ("unreachable", "NoExecute")]),
        ({"Ready": "True", "MemoryPressure": "True"}, [("memory-pressure", "NoSchedule")]),
        ({"Ready": "True", "NetworkUnavailable": "True"}, [("network-unavailable", "NoSchedule")]),
    ],
)
def test_taints_follow_conditions(conditions: dict[str, str], expected: list[tuple[str, str]]) -> None:
    ours = {"key": "node.kubernetes.io/disk-pressure", "effect": "NoSchedule"}
    others = {"key": "mine", "effect": "NoSchedule"}
    status = {"conditions": [{"type": kind, "status": value} for kind, value in conditions.items()]}
    found = taints_for({"spec": {"taints": [ours, others]}, "status": status}, "now")
    keys = [(each["key"].removeprefix("node.kubernetes.io/"), each["effect"]) for each in found]
    assert keys == [("mine", "NoSchedule"), *expected]


def test_a_cordoned_node_is_tainted_until_it_is_uncordoned() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.change("Node", "node-0", lambda obj: obj["spec"].update(unschedulable=True))
        await cluster.until(lambda: taints(cluster, "node-0") == [("unschedulable", "NoSchedule")])
        cluster.change("Node", "node-0", lambda obj: obj["spec"].pop("unschedulable"))
        await cluster.until(lambda: taints(cluster, "node-0") == [])

    in_embedded_cluster(story)


def test_a_silent_node_becomes_unreachable_and_its_pods_leave_after_five_minutes() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(deployment(replicas=4))
        await cluster.until(lambda: places(cluster) == {"node-0", "node-1"})
        cluster.kubelets.stop_node("node-0")
        await asyncio.sleep(45)
        assert taints(cluster, "node-0") == []
        await asyncio.sleep(15)
        assert taints(cluster, "node-0") == [("unreachable", "NoSchedule"), ("unreachable", "NoExecute")]
        assert cluster.get("Deployment", "web")["status"]["readyReplicas"] == 2
        await asyncio.sleep(250)
        assert len(cluster.list("Pod")) == 4
        await asyncio.sleep(60)
        assert places(cluster) == {"node-1"}
        assert cluster.get("Deployment", "web")["status"]["readyReplicas"] == 4
        left = [p for p in cluster.list("Pod") if p["spec"]["nodeName"] == "node-0"]
        assert len(left) == 2  # they cannot go before their node is back
        cluster.kubelets.start_node("node-0")
        await cluster.until(lambda: taints(cluster, "node-0") == [] and len(cluster.list("Pod")) == 4)

    in_embedded_cluster(story, nodes=2)


def test_the_pods_of_a_node_that_is_back_in_time_are_ready_again() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(deployment(replicas=2))
        await cluster.until(lambda: len(list(cluster.running())) == 2)
        before = set(cluster.phases())
        cluster.kubelets.stop_node("node-0")
        await cluster.until(lambda: "readyReplicas" not in cluster.get("Deployment", "web")["status"])
        cluster.kubelets.start_node("node-0")
        await cluster.until(lambda: cluster.get("Deployment", "web")["status"].get("readyReplicas") == 2)
        assert set(cluster.phases()) == before

    in_embedded_cluster(story, nodes=1)


def test_a_pod_leaves_a_no_execute_taint_when_its_tolerance_ends() -> None:
    async def story(cluster: Embedded) -> None:
        for name, seconds in (("none", None), ("some", 30), ("all", -1)):
            pod = {"apiVersion": "v1", "kind": "Pod", **template({"app": name})}
            pod["metadata"]["name"] = name
            if seconds is not None:
                toleration: Object = {"key": "gone", "operator": "Exists", "effect": "NoExecute"}
                pod["spec"]["tolerations"] = [toleration | ({"tolerationSeconds": seconds} if seconds > 0 else {})]
            cluster.create(pod)
        await cluster.until(lambda: len(list(cluster.running())) == 3)
        taint = {"key": "gone", "value": "", "effect": "NoExecute"}
        cluster.change("Node", "node-0", lambda obj: obj["spec"].update(taints=[taint]))
        await asyncio.sleep(5)
        assert sorted(cluster.phases()) == ["all", "some"]
        await asyncio.sleep(30)
        assert sorted(cluster.phases()) == ["all"]
        assert ("none", "TaintManagerEviction", "Marking for deletion Pod default/none") in cluster.events()

    in_embedded_cluster(story, nodes=1)


def test_the_pods_of_a_node_that_is_gone_are_cleared_away() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(deployment(replicas=2))
        await cluster.until(lambda: places(cluster) == {"node-0", "node-1"})
        before = set(cluster.phases())
        cluster.delete("Node", "node-0")
        await asyncio.sleep(30)
        assert set(cluster.phases()) == before
        await cluster.until(lambda: places(cluster) == {"node-1"} and len(list(cluster.running())) == 2)
        await cluster.until(lambda: cluster.find("Lease", "node-0", "kube-node-lease") is None)

    in_embedded_cluster(story, nodes=2)


def test_a_node_that_somebody_wrote_by_hand_stays_as_it_was_written() -> None:
    async def story(cluster: Embedded) -> None:
        status = {"allocatable": {"cpu": "1"}, "conditions": [{"type": "Ready", "status": "True"}]}
        cluster.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "paper"}, "status": status})
        await asyncio.sleep(300)
        assert taints(cluster, "paper") == []

    in_embedded_cluster(story)
