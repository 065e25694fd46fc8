"""Pods whose devices get a NoExecute taint go, as kube-controller-manager of 1.37 makes them go."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from podium.kube.decode import decode_json
from podium.kube.devices import DeviceTaintRule
from podium_cluster.controllers.taint_eviction import CONDITION, selects
from tests.podium_cluster.apiserver.embedded import Embedded, in_embedded_cluster
from tests.podium_cluster.controllers.test_resource_claims import allocate, claim, pod

Object = dict[str, Any]
VERSION = "resource.k8s.io/v1"


def rule(effect: str = "NoExecute", **selector: str) -> Object:
    taint = {"key": "broken", "value": "yes", "effect": effect}
    spec = {"deviceSelector": selector, "taint": taint}
    return {"apiVersion": VERSION, "kind": "DeviceTaintRule", "metadata": {"name": "broken"}, "spec": spec}


def condition(cluster: Embedded) -> Object:
    conditions = (cluster.get("DeviceTaintRule", "broken").get("status") or {}).get("conditions") or [{}]
    found: Object = next((each for each in conditions if each.get("type") == CONDITION), {})
    return found


def users(cluster: Embedded) -> None:
    """A pod on a node whose claim has the device gpu-0 of node-0."""
    cluster.create(claim("c"))
    placed = pod("p", c={"resourceClaimName": "c"})
    placed["spec"]["nodeName"] = "node-0"
    allocate(cluster, "c", cluster.create(placed))


def test_a_rule_makes_the_users_of_a_device_go_and_says_so() -> None:
    async def story(cluster: Embedded) -> None:
        users(cluster)
        await asyncio.sleep(1)
        cluster.create(rule(driver="gpu.example.com", device="gpu-0"))
        await cluster.until(lambda: "deletionTimestamp" in cluster.get("Pod", "p")["metadata"])
        why = {each["type"]: each for each in cluster.get("Pod", "p")["status"]["conditions"]}["DisruptionTarget"]
        assert (why["reason"], why["message"]) == (
            "DeletionByDeviceTaintManager",
            "Device Taint manager: deleting due to NoExecute taint",
        )
        assert ("p", "DeviceTaintManagerEviction", "Marking for deletion") in cluster.events()
        await cluster.until(lambda: condition(cluster).get("reason") == "Completed")
        assert condition(cluster)["message"] == "1 pod evicted since starting the controller."

    in_embedded_cluster(story, binds=False)


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (rule(driver="gpu.example.com", device="gpu-1"), "NotStarted"),
        (rule(effect="NoSchedule", driver="gpu.example.com"), "OtherEffect"),
        (rule(effect="None", driver="gpu.example.com"), "NoEffect"),
    ],
)
def test_other_devices_and_effects_leave_pods_alone(made: Object, reason: str) -> None:
    async def story(cluster: Embedded) -> None:
        users(cluster)
        cluster.create(made)
        await cluster.until(lambda: condition(cluster).get("reason") == reason)
        assert "deletionTimestamp" not in cluster.get("Pod", "p")["metadata"]
        if reason == "NoEffect":
            assert "1 allocated device selected. 1 pod would be evicted in 1 namespace" in condition(cluster)["message"]

    in_embedded_cluster(story, binds=False)


@pytest.mark.parametrize(
    ("spec", "chosen"),
    [
        ({}, False),
        ({"deviceSelector": {}}, True),
        ({"deviceSelector": {"driver": "d", "pool": "p", "device": "x"}}, True),
        ({"deviceSelector": {"pool": "q"}}, False),
    ],
)
def test_a_rule_selects_devices_by_all_that_it_names(spec: Object, chosen: bool) -> None:
    made = decode_json(DeviceTaintRule, msgspec.json.encode({"metadata": {"name": "r"}, "spec": spec}))
    assert selects(made, "d", "p", "x") == chosen
