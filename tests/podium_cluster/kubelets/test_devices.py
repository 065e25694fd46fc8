"""Devices of embedded nodes: published as a driver does, and pods that start only with theirs."""

from __future__ import annotations

from typing import Any

import pytest

from podium.kube.devices import FINALIZER
from podium_cluster.apiserver.errors import StatusError
from podium_cluster.kubelets import DeviceShape
from tests.podium_cluster.apiserver.embedded import Embedded, in_embedded_cluster
from tests.podium_cluster.controllers.test_resource_claims import allocate, claim, pod

Object = dict[str, Any]


def slices(cluster: Embedded, pool: str) -> list[Object]:
    found = [each for each in cluster.list("ResourceSlice") if each["spec"]["pool"]["name"] == pool]
    return sorted(found, key=lambda each: str(each["metadata"]["name"]))


def test_a_node_publishes_its_devices_and_a_class_to_ask_for_them() -> None:
    async def story(cluster: Embedded) -> None:
        attributes = {"model": "a100", "healthy": True, "driver": {"version": "1.2.3"}}
        shape = DeviceShape(nodes="node-[01]", count=200, attributes=attributes, capacity={"memory": "40Gi"})
        assert cluster.kubelets.add_devices([shape]) == 400
        first, second = slices(cluster, "node-0")
        assert [len(each["spec"]["devices"]) for each in (first, second)] == [128, 72]
        assert first["spec"]["pool"] == {"name": "node-0", "generation": 1, "resourceSliceCount": 2}
        assert first["spec"]["nodeName"] == "node-0"
        last = second["spec"]["devices"][-1]
        assert last["name"] == "gpu-199"
        assert last["attributes"] == {
            "index": {"int": 199},
            "model": {"string": "a100"},
            "healthy": {"bool": True},
            "driver": {"version": "1.2.3"},
        }
        assert last["capacity"] == {"memory": {"value": "40Gi"}}
        assert slices(cluster, "node-2") == []
        expression = cluster.get("DeviceClass", "gpu.podium.dev")["spec"]["selectors"][0]["cel"]["expression"]
        assert expression == 'device.driver == "gpu.podium.dev"'
        cluster.delete("Node", "node-0")
        await cluster.until(lambda: not slices(cluster, "node-0"))

    in_embedded_cluster(story, nodes=3)


def test_a_pool_gets_its_next_generation_only_when_its_devices_change() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.kubelets.add_devices([DeviceShape(count=130)])
        cluster.kubelets.add_devices([DeviceShape(count=130)])
        assert [each["spec"]["pool"]["generation"] for each in slices(cluster, "node-0")] == [1, 1]
        cluster.kubelets.add_devices([DeviceShape(count=2), DeviceShape(count=1, attributes={"model": "t4"})])
        (only,) = slices(cluster, "node-0")
        assert only["spec"]["pool"] == {"name": "node-0", "generation": 2, "resourceSliceCount": 1}
        assert [device["name"] for device in only["spec"]["devices"]] == ["gpu-0", "gpu-1", "gpu-2"]
        with pytest.raises(StatusError, match="a valid C identifier"):
            cluster.kubelets.add_devices([DeviceShape(attributes={"a b": 1})])

    in_embedded_cluster(story, nodes=1)


def test_a_pod_starts_only_when_its_claim_has_devices_for_it() -> None:
    async def story(cluster: Embedded) -> None:
        made = cluster.create(pod("p", c={"resourceClaimName": "c"}))
        uid = made["metadata"]["uid"]

        def complaint(text: str) -> bool:
            why = f"Failed to prepare dynamic resources: {text}"
            return ("p", "FailedPrepareDynamicResources", why) in cluster.events()

        missing = 'fetch ResourceClaim c: resourceclaims.resource.k8s.io "c" not found'
        await cluster.until(lambda: complaint(missing))
        assert cluster.get("Pod", "p")["status"]["containerStatuses"][0]["state"]["waiting"]
        claimed = cluster.create(claim("c"))["metadata"]["uid"]
        await cluster.until(lambda: complaint(f"pod p ({uid}) is not allowed to use ResourceClaim c ({claimed})"))
        assert cluster.phases() == {"p": "Pending"}
        allocate(cluster, "c", made)
        await cluster.until(lambda: cluster.phases() == {"p": "Running"})
        assert cluster.get("ResourceClaim", "c")["metadata"]["finalizers"] == [FINALIZER]
        cluster.delete("Pod", "p")
        await cluster.until(lambda: "allocation" not in cluster.get("ResourceClaim", "c").get("status", {}))

    in_embedded_cluster(story, nodes=1)
