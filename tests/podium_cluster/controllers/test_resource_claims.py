"""Resource claims: made from templates, reserved, released and deleted, as kube-controller-manager does it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from podium.kube.devices import FINALIZER
from tests.podium_cluster.apiserver.embedded import Embedded, in_embedded_cluster
from tests.podium_cluster.apiserver.server import EmbeddedServer
from tools.testbed import ControlPlane
from tools.testbed.apiclient import ApiClient, ApiError

Object = dict[str, Any]
VERSION = "resource.k8s.io/v1"
CLAIM = f"{VERSION}/ResourceClaim"
SPEC = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
ALLOCATION = {
    "devices": {"results": [{"request": "r", "driver": "gpu.example.com", "pool": "node-0", "device": "gpu-0"}]}
}


def template(name: str = "gpu", **metadata: Any) -> Object:
    spec = {"spec": SPEC, **({"metadata": metadata} if metadata else {})}
    return {"apiVersion": VERSION, "kind": "ResourceClaimTemplate", "metadata": _named(name), "spec": spec}


def claim(name: str) -> Object:
    return {"apiVersion": VERSION, "kind": "ResourceClaim", "metadata": _named(name), "spec": SPEC}


def pod(name: str, **claims: Object) -> Object:
    entries = [{"name": entry, **source} for entry, source in claims.items()]
    spec = {"containers": [{"name": "main", "image": "app:1"}], "resourceClaims": entries, "restartPolicy": "Never"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": _named(name), "spec": spec}


def _named(name: str) -> Object:
    return {"name": name, "namespace": "default"}


FROM_TEMPLATE = {"resourceClaimTemplateName": "gpu"}


def made_claim(cluster: Embedded, pod: str, entry: str = "gpu") -> str:
    for status in cluster.get("Pod", pod)["status"].get("resourceClaimStatuses") or ():
        if status["name"] == entry:
            return str(status["resourceClaimName"])
    return ""


def allocate(cluster: Embedded, name: str, *users: Object) -> None:
    """What a scheduler writes before it binds."""
    cluster.change("ResourceClaim", name, lambda obj: obj["metadata"].update(finalizers=[FINALIZER]))
    obj = cluster.get("ResourceClaim", name)
    references = [
        {"resource": "pods", "name": user["metadata"]["name"], "uid": user["metadata"]["uid"]} for user in users
    ]
    obj["status"] = {"allocation": ALLOCATION, **({"reservedFor": references} if references else {})}
    cluster.api.update(cluster.kind("ResourceClaim"), obj, subresource="status")


def test_a_pod_gets_a_claim_from_its_template() -> None:
    async def story(cluster: Embedded) -> None:
        made = cluster.create(pod("p", gpu=FROM_TEMPLATE))
        await asyncio.sleep(5)
        why = 'PodResourceClaim gpu: resource claim template "gpu": resourceclaimtemplate.resource.k8s.io "gpu" '
        assert ("p", "FailedResourceClaimCreation", f"{why}not found") in cluster.events()
        cluster.create(template(labels={"a": "b"}, annotations={"c": "d"}))
        await cluster.until(lambda: made_claim(cluster, "p"))
        found = cluster.get("ResourceClaim", made_claim(cluster, "p"))
        assert found["metadata"]["generateName"] == "p-gpu-"
        assert found["metadata"]["labels"] == {"a": "b"}
        assert found["metadata"]["annotations"] == {"c": "d", "resource.kubernetes.io/pod-claim-name": "gpu"}
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": made["metadata"]["uid"], "controller": True}
        assert found["metadata"]["ownerReferences"] == [owner]
        assert found["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] == "gpu"

    in_embedded_cluster(story, binds=False)


def test_a_claim_that_was_made_for_the_pod_is_taken_and_one_that_was_deleted_is_made_again() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(template())
        cluster.create(pod("p", gpu=FROM_TEMPLATE))
        await cluster.until(lambda: made_claim(cluster, "p"))
        first = made_claim(cluster, "p")
        cluster.delete("ResourceClaim", first)
        await cluster.until(lambda: made_claim(cluster, "p") != first)
        forgetful = cluster.get("Pod", "p")
        second = made_claim(cluster, "p")
        del forgetful["status"]["resourceClaimStatuses"]
        cluster.api.update(cluster.kind("Pod"), forgetful, subresource="status")
        await cluster.until(lambda: made_claim(cluster, "p"))
        assert made_claim(cluster, "p") == second
        assert len(cluster.list("ResourceClaim")) == 1

    in_embedded_cluster(story, binds=False)


def test_the_last_user_gives_the_devices_back() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(claim("c"))
        users = [cluster.create(pod(name, c={"resourceClaimName": "c"})) for name in ("p", "q")]
        allocate(cluster, "c", *users)
        await asyncio.sleep(5)
        assert len(cluster.get("ResourceClaim", "c")["status"]["reservedFor"]) == 2
        cluster.delete("Pod", "p")
        await cluster.until(lambda: len(cluster.get("ResourceClaim", "c")["status"]["reservedFor"]) == 1)
        assert "allocation" in cluster.get("ResourceClaim", "c")["status"]
        ended = cluster.get("Pod", "q")
        ended["status"]["phase"] = "Succeeded"
        cluster.api.update(cluster.kind("Pod"), ended, subresource="status")
        await cluster.until(lambda: "allocation" not in cluster.get("ResourceClaim", "c").get("status", {}))
        await cluster.until(lambda: not cluster.get("ResourceClaim", "c")["metadata"].get("finalizers"))

    in_embedded_cluster(story, binds=False)


def test_a_claim_that_was_never_used_keeps_its_devices_until_it_is_deleted() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(claim("c"))
        allocate(cluster, "c")
        await asyncio.sleep(30)
        assert "allocation" in cluster.get("ResourceClaim", "c")["status"]
        cluster.delete("ResourceClaim", "c")
        await cluster.until(lambda: cluster.find("ResourceClaim", "c") is None)

    in_embedded_cluster(story, binds=False)


def test_a_claim_made_for_a_pod_goes_with_it_or_when_it_has_ended() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(template())
        for name in ("p", "q"):
            made = cluster.create(pod(name, gpu=FROM_TEMPLATE))
            await cluster.until(lambda name=name: made_claim(cluster, name))  # type: ignore[misc]
            allocate(cluster, made_claim(cluster, name), made)
        cluster.delete("Pod", "p")
        ended = cluster.get("Pod", "q")
        ended["status"]["phase"] = "Failed"
        cluster.api.update(cluster.kind("Pod"), ended, subresource="status")
        await cluster.until(lambda: not cluster.list("ResourceClaim"))

    in_embedded_cluster(story, binds=False)


def test_a_pod_that_was_bound_by_hand_is_reserved_for() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(claim("c"))
        allocate(cluster, "c")
        cluster.create(pod("p", c={"resourceClaimName": "c"}))
        await cluster.until(lambda: cluster.get("ResourceClaim", "c")["status"].get("reservedFor"))
        assert cluster.get("ResourceClaim", "c")["status"]["reservedFor"][0]["name"] == "p"

    in_embedded_cluster(story)


# The same under kube-controller-manager.


@pytest.fixture
def plane(empty_control_plane: ControlPlane) -> Iterator[ControlPlane]:
    empty_control_plane.start_controller_manager(("resourceclaim-controller", "garbage-collector-controller"))
    yield empty_control_plane
    empty_control_plane.stop_components()
    empty_control_plane.wipe()


def picture(client: ApiClient) -> Object:
    """Claims and what pods say of them, with what is made up put aside."""
    pods = {each["metadata"]["uid"]: each["metadata"]["name"] for each in client.list("Pod")}
    claims = {}
    for each in client.list(CLAIM):
        meta = each["metadata"]
        owners = [{**owner, "uid": pods.get(owner["uid"], "")} for owner in meta.get("ownerReferences", ())]
        users = [user["name"] for user in each.get("status", {}).get("reservedFor", ())]
        kept = {field: meta.get(field) for field in ("generateName", "labels", "annotations", "finalizers")}
        allocated = "allocation" in each.get("status", {})
        claims[meta.get("generateName") or meta["name"]] = [kept, owners, users, allocated, each["spec"]]
    said = {
        # kube-controller-manager writes them in the order of a Go map
        each["metadata"]["name"]: sorted(status["name"] for status in each["status"].get("resourceClaimStatuses", ()))
        for each in client.list("Pod")
    }
    events = {
        (event["involvedObject"]["name"], event["reason"], event["message"])
        for event in client.list("Event")
        if event["reason"] == "FailedResourceClaimCreation"
        and "missing" in event["message"]  # the others' template may just not have come to the controller yet
    }
    return {"claims": claims, "pods": said, "events": sorted(events)}


def unlike(real: Object, ours: Object) -> list[str]:
    """Where two pictures differ."""
    found = [
        f"{part} {name}: {real[part].get(name)} under kube-controller-manager, {ours[part].get(name)} here"
        for part in ("claims", "pods")
        for name in sorted({*real[part], *ours[part]})
        if real[part].get(name) != ours[part].get(name)
    ]
    return found + [f"events: {each['events']}" for each in (real, ours) if real["events"] != ours["events"]]


def test_claims_come_to_the_same_end_as_under_the_real_controller(plane: ControlPlane) -> None:
    with EmbeddedServer(module="tests.podium_cluster.apiserver.with_controllers") as embedded:
        both = [plane.client, embedded.client]

        def everywhere(act: Callable[[ApiClient], object]) -> None:
            for client in both:
                act(client)

        def come_to(settled: Callable[[Object], object]) -> None:
            end = time.monotonic() + 180
            while True:
                real, ours = map(picture, both)
                if real == ours and settled(real):
                    return
                assert time.monotonic() < end, "\n".join(unlike(real, ours)) or f"both: {real}"
                time.sleep(0.05)

        def reserve(client: ApiClient, claim: str, *names: str) -> None:
            found = next(
                each
                for each in client.list(CLAIM)
                if claim in (each["metadata"]["name"], each["metadata"].get("generateName"))
            )
            users = [client.get("Pod", name)["metadata"] for name in names]
            name = found["metadata"]["name"]
            client.patch(CLAIM, name, {"metadata": {"finalizers": [FINALIZER]}})
            references = [{"resource": "pods", "name": user["name"], "uid": user["uid"]} for user in users]
            client.patch(
                CLAIM, name, {"status": {"allocation": ALLOCATION, "reservedFor": references}}, subresource="status"
            )

        long = "a-pod-with-a-name-of-more-than-fifty-characters-in-all"
        direct = {"resourceClaimName": "shared"}
        created = [
            template("gpu", labels={"a": "b"}, annotations={"c": "d"}),
            claim("shared"),
            pod("p", gpu=FROM_TEMPLATE, second=FROM_TEMPLATE),
            pod("q", shared=direct),
            pod("r", shared=direct, gpu=FROM_TEMPLATE),
            pod(long, **{"a-long-entry": FROM_TEMPLATE}),
            pod("lost", gpu={"resourceClaimTemplateName": "missing"}),
        ]
        everywhere(lambda client: client.create_all(created, in_order=True))
        come_to(lambda seen: len(seen["claims"]) == 5 and seen["events"])

        everywhere(lambda client: reserve(client, "shared", "q", "r"))
        everywhere(lambda client: reserve(client, "p-gpu-", "p"))
        come_to(lambda seen: len(seen["claims"]["shared"][2]) == 2)

        everywhere(lambda client: client.delete("Pod", "q"))
        come_to(lambda seen: len(seen["claims"]["shared"][2]) == 1)

        everywhere(lambda client: client.set_status({**client.get("Pod", "r"), "status": {"phase": "Succeeded"}}))
        come_to(lambda seen: not seen["claims"]["shared"][3] and "r-gpu-" not in seen["claims"])

        everywhere(lambda client: client.delete("Pod", "p"))
        come_to(lambda seen: "p-gpu-" not in seen["claims"] and "p-second-" not in seen["claims"])

        everywhere(lambda client: reserve(client, "shared"))
        everywhere(lambda client: client.delete(CLAIM, "shared"))
        come_to(lambda seen: "shared" not in seen["claims"])

        everywhere(lambda client: client.create(template("missing")))
        come_to(lambda seen: "lost-gpu-" in seen["claims"])
        with pytest.raises(ApiError, match="not found"):
            embedded.client.get(CLAIM, "shared")
