"""ReplicaSets and ReplicationControllers on an embedded cluster in virtual time."""

import asyncio
from typing import Any

from tests.podium_cluster.apiserver.embedded import Embedded, in_embedded_cluster, replica_set, template

Object = dict[str, Any]


def bare_pod(name: str, labels: dict[str, str]) -> Object:
    pod = template(labels)
    pod["metadata"]["name"] = name
    return {"apiVersion": "v1", "kind": "Pod", **pod}


def owner_of(pod: Object) -> str:
    return str(pod["metadata"].get("ownerReferences", [{"name": ""}])[0]["name"])


def test_missing_pods_are_created_and_surplus_ones_deleted() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(replica_set(replicas=120))
        await cluster.until(lambda: cluster.get("ReplicaSet", "web")["status"].get("readyReplicas") == 120)
        cluster.change("ReplicaSet", "web", lambda obj: obj["spec"].update(replicas=1))
        await cluster.until(lambda: len(cluster.list("Pod")) == 1)
        await asyncio.sleep(1)
        status = cluster.get("ReplicaSet", "web")["status"]
        assert (status["replicas"], status["terminatingReplicas"]) == (1, 0)

    in_embedded_cluster(story)


def test_a_pod_that_is_deleted_or_has_failed_is_replaced() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(replica_set(replicas=2))
        await cluster.until(lambda: len(list(cluster.running())) == 2)
        first = cluster.list("Pod")[0]["metadata"]["name"]
        cluster.delete("Pod", first)
        await cluster.until(lambda: first not in cluster.phases() and len(list(cluster.running())) == 2)

    in_embedded_cluster(story)


def test_a_pod_without_owner_that_matches_is_adopted() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(bare_pod("orphan", {"app": "web"}))
        cluster.create(bare_pod("stranger", {"app": "other"}))
        cluster.create(replica_set(replicas=2))
        await cluster.until(lambda: cluster.get("ReplicaSet", "web")["status"].get("readyReplicas") == 2)
        assert owner_of(cluster.get("Pod", "orphan")) == "web"
        assert owner_of(cluster.get("Pod", "stranger")) == ""
        assert len(cluster.list("Pod")) == 3

    in_embedded_cluster(story)


def test_an_orphan_that_comes_later_is_adopted_and_is_one_too_many() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(replica_set(replicas=1))
        await cluster.until(lambda: len(list(cluster.running())) == 1)
        cluster.create(bare_pod("late", {"app": "web"}))
        await cluster.until(lambda: "late" not in cluster.phases())
        assert len(cluster.list("Pod")) == 1

    in_embedded_cluster(story)


def test_a_pod_whose_labels_no_longer_match_is_released_and_replaced() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(replica_set(replicas=1))
        await cluster.until(lambda: len(list(cluster.running())) == 1)
        name = cluster.list("Pod")[0]["metadata"]["name"]
        cluster.change("Pod", name, lambda obj: obj["metadata"].update(labels={"app": "debugged"}))
        await cluster.until(lambda: len(list(cluster.running())) == 2)
        assert owner_of(cluster.get("Pod", name)) == ""

    in_embedded_cluster(story)


def test_pods_that_cannot_be_created_are_told_in_the_status() -> None:
    async def story(cluster: Embedded) -> None:
        bad = replica_set(replicas=2)
        bad["spec"]["template"]["spec"]["priorityClassName"] = "missing"
        cluster.create(bad)
        await cluster.until(lambda: cluster.get("ReplicaSet", "web")["status"].get("conditions"))
        condition = cluster.get("ReplicaSet", "web")["status"]["conditions"][0]
        assert (condition["type"], condition["reason"]) == ("ReplicaFailure", "FailedCreate")
        assert "no PriorityClass with name missing was found" in condition["message"]
        priority = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "missing"}}
        cluster.create({**priority, "value": 7})
        await cluster.until(lambda: cluster.get("ReplicaSet", "web")["status"].get("readyReplicas") == 2)
        assert "conditions" not in cluster.get("ReplicaSet", "web")["status"]

    in_embedded_cluster(story)


def test_a_replication_controller_does_the_same() -> None:
    async def story(cluster: Embedded) -> None:
        labels = {"app": "old"}
        spec = {"replicas": 2, "selector": labels, "template": template(labels)}
        cluster.create({"apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "old"}, "spec": spec})
        await cluster.until(lambda: cluster.get("ReplicationController", "old")["status"].get("readyReplicas") == 2)
        assert "terminatingReplicas" not in cluster.get("ReplicationController", "old")["status"]

    in_embedded_cluster(story)
