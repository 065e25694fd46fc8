"""Deployments on an embedded cluster in virtual time."""

import asyncio
from typing import Any

import pytest

from podium_cluster.controllers import rollout
from tests.podium_cluster.apiserver.embedded import Embedded, deployment, in_embedded_cluster

Object = dict[str, Any]


def progress(found: Object) -> tuple[str, str]:
    conditions = {each["type"]: each for each in found["status"].get("conditions", ())}
    return conditions["Progressing"]["status"], conditions["Progressing"]["reason"]


def set_image(image: str) -> Any:
    def change(obj: Object) -> None:
        obj["spec"]["template"]["spec"]["containers"][0]["image"] = image

    return change


def sizes(cluster: Embedded) -> dict[str, int]:
    return {
        each["spec"]["template"]["spec"]["containers"][0]["image"]: each["spec"]["replicas"]
        for each in cluster.list("ReplicaSet")
    }


async def settled(cluster: Embedded, name: str = "web") -> Object:
    def done() -> bool:
        found = cluster.get("Deployment", name)
        seen = found["status"].get("observedGeneration") == found["metadata"]["generation"]
        return seen and rollout.is_complete(found, found["status"]) and progress(found)[1] == "NewReplicaSetAvailable"

    await cluster.until(done)
    await asyncio.sleep(3)
    return cluster.get("Deployment", name)


def test_a_deployment_makes_a_replica_set_that_makes_its_pods() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(deployment(replicas=3))
        found = await settled(cluster)
        owned = cluster.list("ReplicaSet")[0]
        assert owned["metadata"]["ownerReferences"][0]["uid"] == found["metadata"]["uid"]
        assert owned["spec"]["selector"]["matchLabels"]["pod-template-hash"] in owned["metadata"]["name"]
        assert found["metadata"]["annotations"][rollout.REVISION] == "1"
        assert found["status"]["readyReplicas"] == 3
        assert progress(found) == ("True", "NewReplicaSetAvailable")
        message = f"Scaled up replica set {owned['metadata']['name']} from 0 to 3"
        assert ("web", "ScalingReplicaSet", message) in cluster.events()

    in_embedded_cluster(story)


@pytest.mark.parametrize(("surge", "unavailable"), [(0, 1), (1, 0), ("25%", "25%"), (3, 2)])
def test_a_rolling_update_stays_within_its_limits(surge: int | str, unavailable: int | str) -> None:
    async def story(cluster: Embedded) -> None:
        strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
        cluster.create(deployment(replicas=6, strategy=strategy))
        found = await settled(cluster)
        most, fewest = 6 + rollout.max_surge(found), 6 - rollout.max_unavailable(found)
        cluster.change("Deployment", "web", set_image("app:2"))
        while sizes(cluster) != {"app:1": 0, "app:2": 6}:
            assert sum(sizes(cluster).values()) <= most
            ready = [p for p in cluster.running() if "deletionTimestamp" not in p["metadata"]]
            assert len(list(ready)) >= fewest
            await asyncio.sleep(0.05)
        found = await settled(cluster)
        assert found["metadata"]["annotations"][rollout.REVISION] == "2"

    in_embedded_cluster(story)


def test_recreate_starts_the_new_pods_when_the_old_are_gone() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(deployment(replicas=3, strategy={"type": "Recreate"}))
        await settled(cluster)
        cluster.change("Deployment", "web", set_image("app:2"))
        for _ in range(200):
            images = {pod["spec"]["containers"][0]["image"] for pod in cluster.list("Pod")}
            assert len(images) <= 1
            await asyncio.sleep(0.05)
        await settled(cluster)
        assert sizes(cluster) == {"app:1": 0, "app:2": 3}

    in_embedded_cluster(story)


def test_the_old_template_comes_back_as_a_new_revision_of_its_old_replica_set() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(deployment(replicas=2))
        first = (await settled(cluster))["spec"]["template"]
        cluster.change("Deployment", "web", set_image("app:2"))
        await settled(cluster)
        cluster.change("Deployment", "web", lambda obj: obj["spec"].update(template=first))
        found = await settled(cluster)
        assert found["metadata"]["annotations"][rollout.REVISION] == "3"
        assert sizes(cluster) == {"app:1": 2, "app:2": 0}

    in_embedded_cluster(story)


def test_only_so_many_old_replica_sets_are_kept() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(deployment(replicas=1, revisionHistoryLimit=1))
        for image in ("app:2", "app:3", "app:4"):
            await settled(cluster)
            cluster.change("Deployment", "web", set_image(image))
        await settled(cluster)
        await asyncio.sleep(5)
        assert sizes(cluster) == {"app:3": 0, "app:4": 1}

    in_embedded_cluster(story)


def test_a_paused_deployment_is_scaled_but_not_rolled_out() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(deployment(replicas=2))
        await settled(cluster)
        cluster.change("Deployment", "web", lambda obj: obj["spec"].update(paused=True, replicas=4))
        cluster.change("Deployment", "web", set_image("app:2"))
        await asyncio.sleep(30)
        assert sizes(cluster) == {"app:1": 4}
        assert progress(cluster.get("Deployment", "web")) == ("Unknown", "DeploymentPaused")
        cluster.change("Deployment", "web", lambda obj: obj["spec"].update(paused=False))
        await settled(cluster)
        assert sizes(cluster) == {"app:1": 0, "app:2": 4}

    in_embedded_cluster(story)


def test_a_rollout_that_makes_no_progress_is_told_after_its_deadline() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(deployment(replicas=1, progressDeadlineSeconds=60))
        await cluster.until(lambda: cluster.list("Pod"))
        await asyncio.sleep(30)
        assert progress(cluster.get("Deployment", "web"))[0] == "True"
        await asyncio.sleep(40)
        assert progress(cluster.get("Deployment", "web")) == ("False", "ProgressDeadlineExceeded")

    in_embedded_cluster(story, binds=False)


def test_pods_count_as_available_after_min_ready_seconds() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(deployment(replicas=2, minReadySeconds=20))
        await cluster.until(lambda: cluster.get("Deployment", "web")["status"].get("readyReplicas") == 2)
        await asyncio.sleep(15)
        assert "availableReplicas" not in cluster.get("Deployment", "web")["status"]
        await asyncio.sleep(10)
        assert cluster.get("Deployment", "web")["status"]["availableReplicas"] == 2

    in_embedded_cluster(story)


def test_deleting_a_deployment_takes_its_replica_sets_and_pods_with_it() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(deployment(replicas=2))
        await settled(cluster)
        cluster.delete("Deployment", "web", propagation="Background")
        await cluster.until(lambda: not cluster.list("Pod") and not cluster.list("ReplicaSet"))

    in_embedded_cluster(story)
