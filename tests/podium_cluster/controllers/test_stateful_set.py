"""StatefulSets on an embedded cluster in virtual time."""

import asyncio
from typing import Any

from tests.podium_cluster.apiserver.embedded import Embedded, in_embedded_cluster, stateful_set

Object = dict[str, Any]
REVISION = "controller-revision-hash"


def status(cluster: Embedded) -> Object:
    found: Object = cluster.get("StatefulSet", "db")["status"]
    return found


async def ready(cluster: Embedded, count: int) -> None:
    await cluster.until(lambda: status(cluster).get("readyReplicas") == status(cluster)["replicas"] == count)


def images(cluster: Embedded) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["spec"]["containers"][0]["image"] for pod in cluster.list("Pod")}


def new_image(obj: Object) -> None:
    obj["spec"]["template"]["spec"]["containers"][0]["image"] = "app:2"


def test_pods_come_one_after_the_other_with_names_of_their_own() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(stateful_set(replicas=3))
        seen: list[str] = []
        while len(seen) < 3:
            phases = cluster.phases()
            for name in phases:
                if name not in seen:
                    assert all(phases[earlier] == "Running" for earlier in seen)
                    seen.append(name)
            await asyncio.sleep(0.05)
        assert seen == ["db-0", "db-1", "db-2"]
        await ready(cluster, 3)
        pod = cluster.get("Pod", "db-1")
        assert pod["spec"]["hostname"] == "db-1"
        assert pod["spec"]["subdomain"] == "db"
        assert pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"] == "1"
        assert pod["metadata"]["labels"][REVISION] == status(cluster)["currentRevision"]

    in_embedded_cluster(story)


def test_scaling_down_takes_the_last_first() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(stateful_set(replicas=4))
        await ready(cluster, 4)
        cluster.change("StatefulSet", "db", lambda obj: obj["spec"].update(replicas=1))
        left = [4]
        while left[-1] > 1:
            names = sorted(cluster.phases())
            assert names == [f"db-{i}" for i in range(len(names))]
            left.append(len(names))
            await asyncio.sleep(0.05)
        assert sorted(set(left), reverse=True) == [4, 3, 2, 1]

    in_embedded_cluster(story)


def test_parallel_makes_and_takes_all_at_once() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(stateful_set(replicas=4, podManagementPolicy="Parallel"))
        await cluster.until(lambda: len(cluster.list("Pod")) == 4, seconds=0.5)
        await ready(cluster, 4)
        cluster.change("StatefulSet", "db", lambda obj: obj["spec"].update(replicas=1))
        await asyncio.sleep(0.2)
        leaving = [pod for pod in cluster.list("Pod") if "deletionTimestamp" in pod["metadata"]]
        assert len(leaving) == 3

    in_embedded_cluster(story)


def test_an_update_goes_from_the_last_to_the_first_and_waits_for_each() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(stateful_set(replicas=3))
        await ready(cluster, 3)
        cluster.change("StatefulSet", "db", new_image)
        while set(images(cluster).values()) != {"app:2"} or len(images(cluster)) < 3:
            assert len([p for p in cluster.running() if "deletionTimestamp" not in p["metadata"]]) >= 2
            updated = sorted(name for name, image in images(cluster).items() if image == "app:2")
            assert updated in ([], ["db-2"], ["db-1", "db-2"], ["db-0", "db-1", "db-2"])
            await asyncio.sleep(0.05)
        await ready(cluster, 3)
        await asyncio.sleep(1)
        assert status(cluster)["currentRevision"] == status(cluster)["updateRevision"]
        assert status(cluster)["currentReplicas"] == 3
        assert len(cluster.list("ControllerRevision")) == 2

    in_embedded_cluster(story)


def test_pods_before_the_partition_keep_the_old_revision() -> None:
    async def story(cluster: Embedded) -> None:
        rolling = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
        cluster.create(stateful_set(replicas=3, updateStrategy=rolling))
        await ready(cluster, 3)
        before = [cluster.get("Pod", f"db-{i}")["metadata"]["uid"] for i in range(2)]
        cluster.change("StatefulSet", "db", new_image)
        await asyncio.sleep(30)
        assert images(cluster) == {"db-0": "app:1", "db-1": "app:1", "db-2": "app:2"}
        assert [cluster.get("Pod", f"db-{i}")["metadata"]["uid"] for i in range(2)] == before
        cluster.delete("Pod", "db-0")
        await asyncio.sleep(30)
        assert images(cluster)["db-0"] == "app:1"

    in_embedded_cluster(story)


def test_on_delete_updates_what_is_deleted() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(stateful_set(replicas=2, updateStrategy={"type": "OnDelete"}))
        await ready(cluster, 2)
        cluster.change("StatefulSet", "db", new_image)
        await asyncio.sleep(20)
        assert set(images(cluster).values()) == {"app:1"}
        cluster.delete("Pod", "db-0")
        await asyncio.sleep(20)
        assert images(cluster) == {"db-0": "app:2", "db-1": "app:1"}

    in_embedded_cluster(story)


def test_ordinals_may_start_elsewhere() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(stateful_set(replicas=2, ordinals={"start": 5}))
        await ready(cluster, 2)
        assert sorted(cluster.phases()) == ["db-5", "db-6"]

    in_embedded_cluster(story)


def test_a_pod_that_has_failed_is_made_anew_under_its_name() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(stateful_set(replicas=1))
        await ready(cluster, 1)
        pod = cluster.get("Pod", "db-0")
        pod["status"]["phase"] = "Failed"
        cluster.api.update(cluster.kind("Pod"), pod, subresource="status")
        await cluster.until(lambda: cluster.get("Pod", "db-0")["metadata"]["uid"] != pod["metadata"]["uid"])
        await ready(cluster, 1)

    in_embedded_cluster(story)


def test_each_pod_has_its_own_volume_that_outlives_it() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "StorageClass",
                "metadata": {"name": "local"},
                "provisioner": "podium.dev/local",
                "reclaimPolicy": "Delete",
                "volumeBindingMode": "Immediate",
            }
        )
        claim = {
            "metadata": {"name": "data"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "local",
                "resources": {"requests": {"storage": "1Gi"}},
            },
        }
        cluster.create(stateful_set(replicas=2, volumeClaimTemplates=[claim]))
        await ready(cluster, 2)
        claims = {each["metadata"]["name"]: each for each in cluster.list("PersistentVolumeClaim")}
        assert sorted(claims) == ["data-db-0", "data-db-1"]
        assert all(each["status"]["phase"] == "Bound" for each in claims.values())
        volume = cluster.get("Pod", "db-1")["spec"]["volumes"][0]
        assert volume == {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-1"}}
        cluster.change("StatefulSet", "db", lambda obj: obj["spec"].update(replicas=1))
        await ready(cluster, 1)
        assert len(cluster.list("PersistentVolumeClaim")) == 2
        cluster.delete("PersistentVolumeClaim", "data-db-1")
        await cluster.until(lambda: len(cluster.list("PersistentVolume")) == 1)

    in_embedded_cluster(story)


def test_claims_go_with_the_set_where_it_says_so() -> None:
    async def story(cluster: Embedded) -> None:
        claim = {
            "metadata": {"name": "data"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }
        policy = {"whenDeleted": "Delete", "whenScaled": "Delete"}
        given = stateful_set(replicas=2, volumeClaimTemplates=[claim], persistentVolumeClaimRetentionPolicy=policy)
        cluster.create(given)
        await ready(cluster, 2)
        cluster.change("StatefulSet", "db", lambda obj: obj["spec"].update(replicas=1))
        await cluster.until(lambda: len(cluster.list("PersistentVolumeClaim")) == 1)
        cluster.delete("StatefulSet", "db", propagation="Background")
        await cluster.until(lambda: not cluster.list("PersistentVolumeClaim"))

    in_embedded_cluster(story)


def test_what_cannot_be_made_is_told_and_the_status_still_is_true() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(stateful_set(replicas=2))
        await ready(cluster, 2)
        cluster.change("Pod", "db-0", lambda obj: obj["metadata"].update(labels={"taken": "away"}))
        await asyncio.sleep(10)
        assert status(cluster)["replicas"] == 1
        message = 'Create Pod db-0 in StatefulSet db failed error: pods "db-0" already exists'
        assert ("db", "FailedCreate", message) in cluster.events()
        cluster.delete("Pod", "db-0")
        await ready(cluster, 2)

    in_embedded_cluster(story)
