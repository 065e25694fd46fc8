"""Devices on a real API server: claims are given them, shared, and lose them; nothing is given twice."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.podium.placement.devices import worlds
from tests.podium.placement.devices.worlds import device, request, selectors
from tests.podium.run.crowd import until
from tools.testbed import ControlPlane
from tools.testbed.apiclient import Object
from tools.testbed.http_faults import FaultProxy, Faults, Injected
from tools.testbed.objects import make_node, make_pod

CLAIM = "resource.k8s.io/v1/ResourceClaim"
SLICE = "resource.k8s.io/v1/ResourceSlice"
NOW = "2026-01-01T00:00:00Z"
CLASS = "resource.k8s.io/v1/DeviceClass"
TEMPLATE = "resource.k8s.io/v1/ResourceClaimTemplate"
CONTROLLERS = ("resourceclaim-controller", "garbage-collector-controller")


@pytest.fixture
def plane(empty_control_plane: ControlPlane) -> Iterator[ControlPlane]:
    yield empty_control_plane
    empty_control_plane.stop_components()
    empty_control_plane.wipe()


def claim(name: str, *requests: Object) -> Object:
    made = worlds.claim(*requests, name=name)
    return {**made, "metadata": {"name": name, "namespace": "default"}}


def pod(name: str, *claims: str, **spec: Any) -> Object:
    listed = [{"name": each, "resourceClaimName": each} for each in claims]
    return make_pod(name, resourceClaims=listed, terminationGracePeriodSeconds=0, **spec)


def status_of(plane: ControlPlane, name: str) -> Object:
    found: Object = plane.client.get(CLAIM, name).get("status", {})
    return found


def devices_of(plane: ControlPlane, name: str) -> list[str]:
    results = status_of(plane, name).get("allocation", {}).get("devices", {}).get("results", [])
    return [result["device"] for result in results]


def node_of(plane: ControlPlane, name: str) -> str:
    return str(plane.client.get("v1/Pod", name)["spec"].get("nodeName", ""))


def message_of(plane: ControlPlane, name: str) -> str:
    conditions = plane.client.get("v1/Pod", name)["status"].get("conditions", ())
    return next((str(each.get("message", "")) for each in conditions if each["type"] == "PodScheduled"), "")


def test_claims_are_given_devices_and_shared(plane: ControlPlane) -> None:
    client = plane.client
    client.create_all([make_node("n1"), make_node("n2")])
    client.create_all([worlds.device_class(), worlds.slice_("s", device("d1"), device("d2"))])
    podium = plane.start_podium()
    client.create_all([claim("a"), claim("b"), claim("c")], in_order=True)
    client.create_all([pod("p1", "a"), pod("p2", "a"), pod("p3", "b"), pod("p4", "c")], in_order=True)
    until(lambda: "cannot allocate all claims" in message_of(plane, "p4"), "the third claim finds no device", podium)
    until(lambda: all(node_of(plane, name) == "n1" for name in ("p1", "p2", "p3")), "the others are bound", podium)
    assert sorted(devices_of(plane, "a") + devices_of(plane, "b")) == ["d1", "d2"]
    found = client.get(CLAIM, "a")
    assert "resource.kubernetes.io/delete-protection" in found["metadata"]["finalizers"]
    assert {user["name"] for user in found["status"]["reservedFor"]} == {"p1", "p2"}
    assert found["status"]["allocation"]["allocationTimestamp"]
    nodes = found["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"]
    assert nodes == [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]
    nothing = {"allocation": None, "reservedFor": None}
    client.patch(CLAIM, "b", {"status": nothing}, subresource="status")
    until(lambda: node_of(plane, "p4") == "n1", "the device that was freed goes to the claim that waits", podium)


def test_a_claim_in_the_way_loses_its_devices(plane: ControlPlane) -> None:
    client = plane.client
    client.create_all([make_node("n1", labels={"n": "1"}), make_node("n2", labels={"n": "2"})])
    slices = [worlds.slice_("s1", device("d1"), pool="a"), worlds.slice_("s2", device("d2"), pool="b", nodeName="n2")]
    client.create_all([worlds.device_class(), *slices])
    client.create(claim("a"))
    podium = plane.start_podium()
    client.create(pod("p1", "a", nodeSelector={"n": "1"}))
    until(lambda: node_of(plane, "p1") == "n1", "the first pod is bound", podium)
    client.delete("v1/Pod", "p1")
    client.patch(CLAIM, "a", {"status": {"reservedFor": None}}, subresource="status")
    client.create(pod("p2", "a", nodeSelector={"n": "2"}))
    until(lambda: node_of(plane, "p2") == "n2", "the claim moves with the pod", podium)
    assert devices_of(plane, "a") == ["d2"]


def test_a_selector_that_fails_is_reported(plane: ControlPlane) -> None:
    client = plane.client
    client.create(make_node("n1"))
    client.create_all([worlds.device_class(), worlds.slice_("s", device("d1"))])
    wrong = request(selectors=selectors(f'device.attributes["{worlds.DRIVER}"].nope == 1'))
    client.create(claim("a7", wrong))
    podium = plane.start_podium()
    client.create(pod("p1", "a7"))
    problem = (
        f"claim default/a7: selector #0 on device {worlds.DRIVER}/p/d1: CEL runtime error: no such key: nope. consider "
        "using CEL optional chaining (.? followed by orValue()) or guarding the check with has() for optional fields"
    )
    until(lambda: problem in message_of(plane, "p1"), "the error is in the condition", podium)
    assert message_of(plane, "p1") == f'running "DynamicResources" filter plugin: {problem}'


def test_a_scheduler_that_is_killed_gives_no_device_twice(plane: ControlPlane) -> None:
    client = plane.client
    client.create_all([make_node(f"n{number}") for number in range(1, 4)])
    devices = [device(f"d{number}") for number in range(8)]
    slices = [worlds.slice_(f"s{each}", *devices, pool=f"p{each}", nodeName=f"n{each}") for each in range(1, 4)]
    client.create_all([worlds.device_class(), *slices])
    names = [f"x{number}" for number in range(24)]
    client.create_all(claim(name) for name in names)
    client.create_all(pod(name, name) for name in names)
    podium = plane.start_podium()
    until(lambda: any(devices_of(plane, name) for name in names), "it has begun", podium)
    podium.kill()
    again = plane.start_podium()
    until(lambda: all(node_of(plane, name) for name in names), "all pods are bound", again)
    given: Counter[tuple[str, str]] = Counter()
    for name in names:
        for result in status_of(plane, name)["allocation"]["devices"]["results"]:
            given[result["pool"], result["device"]] += 1
    assert len(given) == 24
    assert max(given.values()) == 1


def test_extended_resources_are_met_by_devices(plane: ControlPlane) -> None:
    client = plane.client
    client.create(make_node("n1"))
    named = worlds.device_class(extendedResourceName="example.com/card")
    client.create_all([named, worlds.slice_("s", device("e0"), device("e1"))])
    podium = plane.start_podium()
    wanted = {"example.com/card": "2"}
    client.create(make_pod("p1", containers=[{"name": "x", "image": "i", "resources": {"limits": wanted}}]))
    until(lambda: node_of(plane, "p1") == "n1", "the pod is bound", podium)
    noted = client.get("v1/Pod", "p1")["status"]["extendedResourceClaimStatus"]
    mapping = {"containerName": "x", "resourceName": "example.com/card", "requestName": "container-0-request-0"}
    assert noted["requestMappings"] == [mapping]
    name = noted["resourceClaimName"]
    assert name.startswith("p1-extended-resources-")
    assert devices_of(plane, name) == ["e0", "e1"]
    made = client.get(CLAIM, name)
    assert made["metadata"]["annotations"] == {"resource.kubernetes.io/extended-resource-claim": "true"}
    assert [user["name"] for user in made["status"]["reservedFor"]] == ["p1"]
    one = {"name": "x", "image": "i", "resources": {"limits": {"example.com/card": "1"}}}
    client.create(make_pod("p2", containers=[one]))
    until(lambda: "cannot allocate all claims" in message_of(plane, "p2"), "no device is left", podium)
    client.patch(CLAIM, name, {"status": {"allocation": None, "reservedFor": None}}, subresource="status")
    until(lambda: node_of(plane, "p2") == "n1", "a device that is freed wakes the pod", podium)


def test_a_pod_waits_until_its_devices_are_attached(plane: ControlPlane) -> None:
    client = plane.client
    client.create(make_node("n1"))
    conditions = {"bindingConditions": ["Ready"], "bindingFailureConditions": ["Broken"], "bindsToNode": True}
    client.create_all([worlds.device_class(), worlds.slice_("s", device("d1", **conditions)), claim("a")])
    podium = plane.start_podium()
    client.create(pod("p1", "a"))
    until(lambda: bool(devices_of(plane, "a")), "the claim has its device", podium)
    until(lambda: client.get("v1/Pod", "p1")["status"].get("nominatedNodeName") == "n1", "it is nominated", podium)
    until(lambda: "BindingConditionsPending" in reasons(plane), "an event says what it waits for", podium)
    assert node_of(plane, "p1") == ""
    ready = {"type": "Ready", "status": "True", "reason": "R", "message": "", "lastTransitionTime": NOW}
    reported = {"driver": worlds.DRIVER, "pool": "p", "device": "d1", "conditions": [ready]}
    client.patch(CLAIM, "a", {"status": {"devices": [reported]}}, subresource="status")
    until(lambda: node_of(plane, "p1") == "n1", "it is bound once the device is attached", podium)


def reasons(plane: ControlPlane) -> list[str]:
    return [str(each.get("reason", "")) for each in plane.client.list("events.k8s.io/v1/Event")]


def template(name: str) -> Object:
    spec = worlds.claim(request(), name=name)["spec"]
    metadata = {"name": name, "namespace": "default"}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": metadata,
        "spec": {"spec": spec},
    }


def templated(name: str) -> Object:
    """A pod with a claim of its own."""
    entries = [{"name": "gpu", "resourceClaimTemplateName": "one"}]
    return make_pod(name, resourceClaims=entries, terminationGracePeriodSeconds=0)


def given(plane: ControlPlane) -> dict[tuple[str, str], str]:
    """Which claim has which device; each has one claim."""
    found: dict[tuple[str, str], str] = {}
    for each in plane.client.list(CLAIM):
        for result in each.get("status", {}).get("allocation", {}).get("devices", {}).get("results", ()):
            device = result["pool"], result["device"]
            assert device not in found, f"{device} is given to {found[device]} and {each['metadata']['name']}"
            found[device] = each["metadata"]["name"]
    return found


def test_claims_come_and_go_with_their_pods_under_the_real_controller(plane: ControlPlane) -> None:
    client = plane.client
    plane.start_controller_manager(CONTROLLERS)
    client.create_all([make_node("n1"), worlds.device_class(), worlds.slice_("s", device("d1"), device("d2"))])
    client.create_all([template("one"), claim("shared")])
    podium = plane.start_podium()
    client.create_all([pod("user-1", "shared"), pod("user-2", "shared"), templated("own")], in_order=True)
    until(lambda: all(node_of(plane, name) for name in ("user-1", "user-2", "own")), "all are bound", podium)
    assert len(given(plane)) == 2
    client.create(templated("waiting"))
    until(lambda: "cannot allocate all claims" in message_of(plane, "waiting"), "no device is left", podium)

    client.delete("v1/Pod", "user-1")
    until(lambda: len(status_of(plane, "shared")["reservedFor"]) == 1, "the claim is still in use", podium)
    assert len(given(plane)) == 2
    client.delete("v1/Pod", "own")
    until(lambda: node_of(plane, "waiting") == "n1", "the device of a pod that is gone goes to the next", podium)
    until(lambda: len(client.list(CLAIM)) == 2, "the claim of the pod went with it", podium)

    client.create(templated("last"))
    until(lambda: "cannot allocate all claims" in message_of(plane, "last"), "no device is left again", podium)
    ended = client.get("v1/Pod", "user-2")
    client.set_status({**ended, "apiVersion": "v1", "kind": "Pod", "status": {"phase": "Succeeded"}})
    until(lambda: node_of(plane, "last") == "n1", "the device of a pod that has ended goes to the next", podium)
    shared = client.get(CLAIM, "shared")
    assert "allocation" not in shared.get("status", {})
    assert not shared["metadata"].get("finalizers")
    assert len(given(plane)) == 2


class StalledBindings(FaultProxy):
    """An API server that takes everything but bindings, which it never answers."""

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path.endswith("/binding"):
            self.injected.append(Injected("stalled", request.method, request.path))
            await asyncio.Event().wait()
        return await super()._handle(request)


def test_a_scheduler_killed_between_allocation_and_binding_loses_and_doubles_no_device(
    plane: ControlPlane, tmp_path: Path
) -> None:
    client = plane.client
    plane.start_controller_manager(CONTROLLERS)
    devices = [device(f"d{number}") for number in range(4)]
    slices = [worlds.slice_(f"s{each}", *devices, pool=f"p{each}", nodeName=f"n{each}") for each in (1, 2)]
    client.create_all([make_node("n1"), make_node("n2"), worlds.device_class(), *slices, template("one")])
    names = [f"x{number}" for number in range(8)]
    client.create_all(claim(name) for name in names[:4])
    client.create_all([*(pod(name, name) for name in names[:4]), *(templated(name) for name in names[4:])])
    with StalledBindings(plane, Faults()) as proxy:
        kubeconfig = plane.write_kubeconfig(tmp_path / "kubeconfig", token=plane.token, server=proxy.url)
        killed = plane.start_podium(kubeconfig=kubeconfig)
        until(lambda: len(given(plane)) == 8 and proxy.counts["stalled"] >= 8, "all is given, nothing bound", killed)
        killed.kill()
    before = given(plane)
    assert not any(node_of(plane, name) for name in names)
    gone = [names[0], names[4]]
    for name in gone:
        client.delete("v1/Pod", name)
    until(lambda: len(given(plane)) == 6, "what was given to pods that are gone is free")
    client.create_all(templated(name) for name in ("y0", "y1"))
    again = plane.start_podium()
    left = [name for name in (*names, "y0", "y1") if name not in gone]
    until(lambda: all(node_of(plane, name) for name in left), "all pods are bound", again)
    after = given(plane)
    assert len(after) == 8
    assert [after[key] for key in after if key in before and after[key] in before.values()] == [
        before[key] for key in after if after[key] in before.values()
    ]
    for key, name in after.items():
        users = status_of(plane, name)["reservedFor"]
        assert [node_of(plane, user["name"]) for user in users] == [key[0].replace("p", "n")]
    for name in left:
        client.delete("v1/Pod", name)
    until(lambda: not given(plane), "all devices are free in the end", again)


def test_slices_that_contradict_each_other_or_go_back_hold_pods_up_but_lose_none(plane: ControlPlane) -> None:
    client = plane.client
    client.create_all([make_node("n1"), worlds.device_class()])
    client.create_all([worlds.slice_("s1", device("d1"), count=2), worlds.slice_("s2", device("d1"), count=2)])
    client.create_all([claim("a"), claim("b"), pod("p1", "a"), pod("p2", "b")], in_order=True)
    podium = plane.start_podium()
    contradicting = "0/1 nodes are available: 1 invalid resource pools were encountered."
    until(lambda: message_of(plane, "p1").startswith(contradicting), "one device is in two slices", podium)

    def update(name: str, *devices: Object, generation: int) -> None:
        pool = {"name": "p", "generation": generation, "resourceSliceCount": 2}
        client.patch(SLICE, name, {"spec": {"pool": pool, "devices": list(devices)}}, "")

    update("s2", device("d2"), generation=2)
    until(lambda: "1 cannot allocate all claims" in message_of(plane, "p1"), "the pool waits for a slice", podium)
    assert not given(plane)
    update("s2", device("d2"), generation=1)
    until(lambda: all(node_of(plane, name) == "n1" for name in ("p1", "p2")), "it went back: all is as it was", podium)
    assert len(given(plane)) == 2
    assert podium.running
