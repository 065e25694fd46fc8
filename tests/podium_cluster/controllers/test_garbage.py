"""Garbage collection by owner references, and namespaces that are deleted."""

import asyncio
from typing import Any

import pytest

from podium_cluster.apiserver.errors import StatusError
from tests.podium_cluster.apiserver.embedded import Embedded, deployment, in_embedded_cluster, replica_set

Object = dict[str, Any]


def thing(name: str, *owners: Object, blocks: bool = True) -> Object:
    references = [
        {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            "blockOwnerDeletion": blocks,
        }
        for owner in owners
    ]
    metadata: Object = {"name": name}
    if references:
        metadata["ownerReferences"] = references
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def names(cluster: Embedded) -> list[str]:
    return [each["metadata"]["name"] for each in cluster.list("ConfigMap", "default")]


def test_what_belongs_to_something_that_is_gone_goes_too_through_generations() -> None:
    async def story(cluster: Embedded) -> None:
        top = cluster.create(thing("top"))
        middle = cluster.create(thing("middle", top))
        cluster.create(thing("bottom", middle))
        cluster.delete("ConfigMap", "top", propagation="Background")
        await cluster.until(lambda: names(cluster) == [])

    in_embedded_cluster(story)


def test_one_owner_that_is_left_is_enough() -> None:
    async def story(cluster: Embedded) -> None:
        one, two = cluster.create(thing("one")), cluster.create(thing("two"))
        cluster.create(thing("shared", one, two))
        cluster.delete("ConfigMap", "one")
        await asyncio.sleep(1)
        references = cluster.get("ConfigMap", "shared")["metadata"]["ownerReferences"]
        assert [each["name"] for each in references] == ["two"]
        cluster.delete("ConfigMap", "two")
        await cluster.until(lambda: names(cluster) == [])

    in_embedded_cluster(story)


def test_in_the_foreground_the_owner_goes_last() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(deployment(replicas=2))
        await cluster.until(lambda: len(list(cluster.running())) == 2)
        cluster.delete("Deployment", "web", propagation="Foreground")
        while cluster.list("Pod"):
            assert cluster.list("ReplicaSet")
            assert "deletionTimestamp" in cluster.get("Deployment", "web")["metadata"]
            await asyncio.sleep(0.05)
        await cluster.until(lambda: cluster.find("Deployment", "web") is None and not cluster.list("ReplicaSet"))

    in_embedded_cluster(story)


def test_orphans_stay_and_are_adopted_by_the_next() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(replica_set(replicas=2))
        await cluster.until(lambda: len(list(cluster.running())) == 2)
        before = sorted(pod["metadata"]["uid"] for pod in cluster.list("Pod"))
        cluster.delete("ReplicaSet", "web", propagation="Orphan")
        await cluster.until(lambda: cluster.find("ReplicaSet", "web") is None)
        assert all("ownerReferences" not in pod["metadata"] for pod in cluster.list("Pod"))
        cluster.create(replica_set(replicas=2))
        await cluster.until(lambda: cluster.get("ReplicaSet", "web")["status"].get("readyReplicas") == 2)
        assert sorted(pod["metadata"]["uid"] for pod in cluster.list("Pod")) == before

    in_embedded_cluster(story)


def test_who_is_born_to_an_owner_that_never_was_does_not_live_long() -> None:
    async def story(cluster: Embedded) -> None:
        ghost = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ghost", "uid": "no-such-uid"}}
        cluster.create(thing("child", ghost))
        unknown = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "x", "uid": "y"}}
        cluster.create(thing("child-of-unknown", unknown))
        await asyncio.sleep(2)
        assert names(cluster) == ["child-of-unknown"]

    in_embedded_cluster(story)


def test_an_owner_of_the_same_name_but_another_uid_is_not_the_owner() -> None:
    async def story(cluster: Embedded) -> None:
        first = cluster.create(thing("owner"))
        cluster.delete("ConfigMap", "owner")
        cluster.create(thing("owner"))
        cluster.create(thing("child", first))
        await cluster.until(lambda: names(cluster) == ["owner"])

    in_embedded_cluster(story)


def test_a_deleted_namespace_is_emptied_first() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
        given = deployment(replicas=3)
        given["metadata"]["namespace"] = "team"
        cluster.create(given)
        for number in range(300):
            config = thing(f"c-{number}")
            config["metadata"]["namespace"] = "team"
            cluster.create(config)
        await cluster.until(lambda: len(list(cluster.running())) == 3)
        cluster.delete("Namespace", "team")
        assert cluster.get("Namespace", "team")["status"]["phase"] == "Terminating"
        with pytest.raises(StatusError, match="being terminated"):
            config["metadata"]["name"] = "late"
            cluster.create(config)
        await cluster.until(lambda: cluster.find("Namespace", "team") is None)
        assert not cluster.list("Pod")
        assert not cluster.list("ConfigMap", "team")
        assert not cluster.list("Event", "team")

    in_embedded_cluster(story)
