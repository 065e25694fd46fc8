"""PersistentVolumes and claims: binding, provisioning, release."""

import asyncio
from typing import Any

from tests.podium_cluster.apiserver.embedded import Embedded, in_embedded_cluster

Object = dict[str, Any]


def claim(name: str, size: str = "5Gi", **spec: Any) -> Object:
    defaults = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}, "storageClassName": ""}
    metadata = {"name": name}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": {**defaults, **spec}}


def volume(name: str, size: str, **spec: Any) -> Object:
    defaults = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": size}, "hostPath": {"path": "/x"}}
    metadata = {"name": name}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": {**defaults, **spec}}


def storage_class(name: str, mode: str, *, default: bool = False) -> Object:
    metadata: Object = {"name": name}
    if default:
        metadata["annotations"] = {"storageclass.kubernetes.io/is-default-class": "true"}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": metadata,
        "provisioner": "podium.dev/local",
        "reclaimPolicy": "Delete",
        "volumeBindingMode": mode,
    }


def bound_to(cluster: Embedded, name: str) -> str:
    found = cluster.get("PersistentVolumeClaim", name)
    if found["status"].get("phase") != "Bound":
        return ""
    return str(found["spec"]["volumeName"])


def test_a_claim_gets_the_smallest_volume_that_fits() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(volume("small", "1Gi"))
        cluster.create(volume("big", "50Gi"))
        cluster.create(volume("right", "6Gi"))
        cluster.create(volume("other-class", "5Gi", storageClassName="fast"))
        cluster.create(volume("other-mode", "5Gi", accessModes=["ReadOnlyMany"]))
        await cluster.until(lambda: cluster.get("PersistentVolume", "small")["status"]["phase"] == "Available")
        cluster.create(claim("a"))
        cluster.create(claim("b"))
        await cluster.until(lambda: bound_to(cluster, "a") and bound_to(cluster, "b"))
        assert (bound_to(cluster, "a"), bound_to(cluster, "b")) == ("right", "big")
        assert cluster.get("PersistentVolume", "right")["status"]["phase"] == "Bound"
        assert cluster.get("PersistentVolumeClaim", "a")["status"]["capacity"] == {"storage": "6Gi"}
        cluster.create(claim("c"))
        await asyncio.sleep(1)
        assert bound_to(cluster, "c") == ""
        cluster.create(volume("late", "5Gi"))
        await cluster.until(lambda: bound_to(cluster, "c") == "late")

    in_embedded_cluster(story)


def test_a_claim_from_before_gets_the_default_class_that_a_new_one_gets() -> None:
    async def story(cluster: Embedded) -> None:
        for name, annotations in (("before", {}), ("old", {"volume.beta.kubernetes.io/storage-class": "other"})):
            made = claim(name)
            del made["spec"]["storageClassName"]
            made["metadata"]["annotations"] = annotations
            cluster.create(made)
        for name in ("b", "a"):
            made = storage_class(name, "Immediate")
            made["metadata"]["annotations"] = {"storageclass.beta.kubernetes.io/is-default-class": "true"}
            cluster.create(made)
        after = claim("after")
        del after["spec"]["storageClassName"]
        cluster.create(after)
        await cluster.until(lambda: bound_to(cluster, "before") and bound_to(cluster, "after"))
        claims = {each["metadata"]["name"]: each["spec"] for each in cluster.list("PersistentVolumeClaim")}
        assert claims["before"]["storageClassName"] == claims["after"]["storageClassName"] == "a"
        assert "storageClassName" not in claims["old"]

    in_embedded_cluster(story)


def test_a_volume_is_released_with_its_claim_and_kept_unless_it_was_made_here() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(storage_class("local", "Immediate", default=True))
        cluster.create(volume("mine", "5Gi"))
        cluster.create(claim("a"))
        made = claim("b")
        del made["spec"]["storageClassName"]
        cluster.create(made)
        await cluster.until(lambda: bound_to(cluster, "a") and bound_to(cluster, "b"))
        name = bound_to(cluster, "b")
        assert name == f"pvc-{cluster.get('PersistentVolumeClaim', 'b')['metadata']['uid']}"
        cluster.delete("PersistentVolumeClaim", "a")
        cluster.delete("PersistentVolumeClaim", "b")
        await cluster.until(lambda: cluster.find("PersistentVolume", name) is None)
        assert cluster.get("PersistentVolume", "mine")["status"]["phase"] == "Released"

    in_embedded_cluster(story)


def test_a_claim_that_waits_for_its_consumer_gets_a_volume_on_the_chosen_node() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(storage_class("local", "WaitForFirstConsumer"))
        cluster.create(claim("a", storageClassName="local"))
        await asyncio.sleep(2)
        assert bound_to(cluster, "a") == ""
        chosen = {"volume.kubernetes.io/selected-node": "node-1"}
        cluster.change("PersistentVolumeClaim", "a", lambda obj: obj["metadata"].update(annotations=chosen))
        await cluster.until(lambda: bound_to(cluster, "a"))
        terms = cluster.get("PersistentVolume", bound_to(cluster, "a"))["spec"]["nodeAffinity"]["required"]
        assert terms["nodeSelectorTerms"][0]["matchExpressions"][0]["values"] == ["node-1"]

    in_embedded_cluster(story)


def test_a_volume_that_the_scheduler_has_reserved_is_bound() -> None:
    async def story(cluster: Embedded) -> None:
        waiting = storage_class("local", "WaitForFirstConsumer") | {"provisioner": "kubernetes.io/no-provisioner"}
        cluster.create(waiting)
        cluster.create(volume("v", "5Gi", storageClassName="local"))
        made = cluster.create(claim("a", storageClassName="local"))
        await asyncio.sleep(2)
        assert bound_to(cluster, "a") == ""
        reference = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "a", "apiVersion": "v1"}
        reference["uid"] = made["metadata"]["uid"]
        cluster.change("PersistentVolume", "v", lambda obj: obj["spec"].update(claimRef=reference))
        await cluster.until(lambda: bound_to(cluster, "a") == "v")
        annotations = cluster.get("PersistentVolumeClaim", "a")["metadata"]["annotations"]
        assert annotations["pv.kubernetes.io/bind-completed"] == "yes"

    in_embedded_cluster(story)


def test_a_claim_whose_volume_is_gone_is_lost() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(volume("v", "5Gi"))
        cluster.create(claim("a"))
        await cluster.until(lambda: bound_to(cluster, "a"))
        cluster.delete("PersistentVolume", "v")
        await cluster.until(lambda: cluster.get("PersistentVolumeClaim", "a")["status"]["phase"] == "Lost")

    in_embedded_cluster(story)
