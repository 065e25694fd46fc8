"""Embedded nodes and the pods they run, in virtual time."""

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from podium_cluster.apiserver.errors import StorageError
from podium_cluster.apiserver.store.collection import Stored
from podium_cluster.kubelets import Kubelets, NodeShape
from tests.podium_cluster.apiserver.embedded import Embedded, deployment, in_embedded_cluster, job, template

Object = dict[str, Any]


def pod(name: str = "p", annotations: dict[str, str] | None = None, **spec: Any) -> Object:
    found = template({"app": name}, annotations, **spec)
    found["metadata"]["name"] = name
    return {"apiVersion": "v1", "kind": "Pod", **found}


def requests(**amounts: str) -> list[Object]:
    return [{"name": "main", "image": "app:1", "resources": {"requests": amounts}}]


def cards() -> list[Object]:
    """Of what cannot be shared, the request must be the limit too."""
    amounts = {"example.com/card": "1"}
    return [{"name": "main", "image": "app", "resources": {"requests": amounts, "limits": amounts}}]


def condition(found: Object, kind: str) -> Object:
    return next(each for each in found["status"]["conditions"] if each["type"] == kind)


def test_a_node_registers_as_its_shape_says() -> None:
    async def story(cluster: Embedded) -> None:
        shape = NodeShape(
            name="gpu",
            count=2,
            cpu="64",
            memory="512Gi",
            resources={"nvidia.com/gpu": "8"},
            reserved={"cpu": "500m", "memory": "1Gi"},
            zones=("east", "west"),
            labels={"pool": "gpu"},
            taints=({"key": "gpu", "value": "yes", "effect": "NoSchedule"},),
            images=({"names": ["app:1"], "sizeBytes": 1000},),
        )
        assert cluster.kubelets.add_nodes([shape]) == ["gpu-0", "gpu-1"]
        node = cluster.get("Node", "gpu-1")
        assert node["status"]["capacity"]["nvidia.com/gpu"] == "8"
        assert node["status"]["allocatable"]["cpu"] == "63500m"
        assert node["status"]["allocatable"]["memory"] == "511Gi"
        assert node["spec"]["taints"][0]["key"] == "gpu"
        assert node["status"]["images"][0]["names"] == ["app:1"]
        labels = node["metadata"]["labels"]
        assert labels["kubernetes.io/hostname"] == "gpu-1"
        assert labels["pool"] == "gpu"
        assert {n["metadata"]["labels"]["topology.kubernetes.io/zone"] for n in cluster.list("Node")} >= {
            "east",
            "west",
        }
        assert condition(node, "Ready")["status"] == "True"

    in_embedded_cluster(story)


def test_leases_are_renewed_in_turn() -> None:
    async def story(cluster: Embedded) -> None:
        await asyncio.sleep(15)
        first = {each["metadata"]["name"]: each["spec"]["renewTime"] for each in cluster.list("Lease")}
        assert sorted(first) == ["node-0", "node-1", "node-2"]
        cluster.kubelets.stop_node("node-1")
        await asyncio.sleep(15)
        second = {each["metadata"]["name"]: each["spec"]["renewTime"] for each in cluster.list("Lease")}
        assert [name for name in first if first[name] != second[name]] == ["node-0", "node-2"]

    in_embedded_cluster(story)


def test_many_nodes_renew_their_leases_ten_times_a_second_at_most() -> None:
    async def story(cluster: Embedded) -> None:
        before = len(cluster.history)
        await asyncio.sleep(20)
        assert len(cluster.history) - before <= 205
        assert cluster.list("Lease")[0]["spec"]["leaseDurationSeconds"] == 120

    in_embedded_cluster(story, nodes=300)


def test_a_pod_starts_runs_and_ends_as_it_declares() -> None:
    async def story(cluster: Embedded) -> None:
        wishes = {"podium.dev/startup": "3s", "podium.dev/duration": "10s"}
        cluster.create(pod(annotations=wishes, restartPolicy="Never"))
        await asyncio.sleep(1)
        found = cluster.get("Pod", "p")
        assert found["status"]["phase"] == "Pending"
        assert found["status"]["containerStatuses"][0]["state"] == {"waiting": {"reason": "ContainerCreating"}}
        assert condition(found, "Ready")["reason"] == "ContainersNotReady"
        await asyncio.sleep(3)
        found = cluster.get("Pod", "p")
        assert found["status"]["phase"] == "Running"
        assert found["status"]["podIP"].startswith("10.0.")
        assert found["status"]["hostIP"].startswith("172.16.")
        assert condition(found, "Ready")["status"] == "True"
        assert "running" in found["status"]["containerStatuses"][0]["state"]
        await asyncio.sleep(10)
        found = cluster.get("Pod", "p")
        assert found["status"]["phase"] == "Succeeded"
        assert found["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0
        assert condition(found, "Ready")["reason"] == "PodCompleted"

    in_embedded_cluster(story)


def test_an_exit_code_other_than_zero_is_a_failure() -> None:
    async def story(cluster: Embedded) -> None:
        wishes = {"podium.dev/duration": "5s", "podium.dev/exit-code": "3"}
        cluster.create(pod(annotations=wishes, restartPolicy="Never"))
        await cluster.until(lambda: cluster.phases()["p"] == "Failed")
        assert cluster.get("Pod", "p")["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3

    in_embedded_cluster(story)


def test_a_container_that_keeps_ending_is_restarted_with_growing_pauses() -> None:
    async def story(cluster: Embedded) -> None:
        wishes = {"podium.dev/startup": "0", "podium.dev/duration": "5s", "podium.dev/exit-code": "1"}
        cluster.create(pod(annotations=wishes))
        starts: list[float] = []
        loop = asyncio.get_running_loop()
        while len(starts) < 4:
            status = cluster.get("Pod", "p")["status"]
            container = status.get("containerStatuses", [{}])[0]
            if container.get("restartCount", -1) == len(starts) and "running" in container["state"]:
                starts.append(loop.time())
            if container.get("state", {}).get("waiting"):
                assert container["state"]["waiting"]["reason"] == "CrashLoopBackOff"
                assert condition(cluster.get("Pod", "p"), "Ready")["status"] == "False"
            await asyncio.sleep(0.1)
        assert [round(b - a) for a, b in pairwise(starts)] == [15, 25, 45]

    in_embedded_cluster(story)


def test_a_service_runs_until_it_is_deleted_and_leaves_within_its_grace_period() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(pod(annotations={"podium.dev/shutdown": "1h"}, terminationGracePeriodSeconds=7))
        await asyncio.sleep(3600)
        assert cluster.phases() == {"p": "Running"}
        cluster.delete("Pod", "p")
        await asyncio.sleep(6)
        assert "deletionTimestamp" in cluster.get("Pod", "p")["metadata"]
        await asyncio.sleep(2)
        assert cluster.find("Pod", "p") is None

    in_embedded_cluster(story)


def test_speed_shortens_what_pods_take() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(job(annotations={"podium.dev/startup": "10s", "podium.dev/duration": "10m"}))
        await cluster.until(lambda: "Succeeded" in cluster.phases().values(), seconds=7)

    in_embedded_cluster(story, speed=100.0)


@pytest.mark.parametrize(
    ("spec", "reason", "message"),
    [
        (
            {"containers": requests(cpu="9")},
            "OutOfcpu",
            "Pod was rejected: Node didn't have enough resource: cpu, requested: 9000, used: 0, capacity: 8000",
        ),
        ({"containers": requests(memory="33Gi")}, "OutOfmemory", "memory, requested: 35433480192"),
        ({"containers": cards()}, "OutOfexample.com/card", "requested: 1, used: 0"),
        ({"nodeSelector": {"disk": "fast"}}, "NodeAffinity", "didn't match Pod's node affinity/selector"),
    ],
)
def test_a_pod_that_does_not_fit_is_rejected_by_its_node(spec: Object, reason: str, message: str) -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(pod(nodeName="node-0", **spec))
        await cluster.until(lambda: cluster.phases() == {"p": "Failed"})
        status = cluster.get("Pod", "p")["status"]
        assert status["reason"] == reason
        assert message in status["message"]
        assert ("p", reason) in {(name, why) for name, why, _ in cluster.events()}
        cluster.create(pod("q", nodeName="node-0"))
        await cluster.until(lambda: cluster.phases()["q"] == "Running")

    in_embedded_cluster(story, nodes=1)


def test_what_ends_makes_room() -> None:
    async def story(cluster: Embedded) -> None:
        for name in ("a", "b"):
            cluster.create(
                pod(
                    name,
                    {"podium.dev/duration": "5s"},
                    nodeName="node-0",
                    restartPolicy="Never",
                    containers=requests(cpu="5"),
                )
            )
        await cluster.until(lambda: cluster.phases() == {"a": "Succeeded", "b": "Failed"})
        cluster.create(pod("c", nodeName="node-0", containers=requests(cpu="5")))
        await cluster.until(lambda: cluster.phases()["c"] == "Running")

    in_embedded_cluster(story, nodes=1)


def test_two_pods_cannot_have_one_host_port() -> None:
    async def story(cluster: Embedded) -> None:
        container = {
            "name": "main",
            "image": "app:1",
            "ports": [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}],
        }
        for name in ("a", "b"):
            cluster.create(pod(name, nodeName="node-0", containers=[container]))
        await cluster.until(lambda: cluster.phases() == {"a": "Running", "b": "Failed"})
        assert cluster.get("Pod", "b")["status"]["reason"] == "NodePorts"

    in_embedded_cluster(story, nodes=1)


def test_a_pod_past_its_deadline_fails() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(pod(activeDeadlineSeconds=20))
        await asyncio.sleep(19)
        assert cluster.phases() == {"p": "Running"}
        await asyncio.sleep(2)
        assert cluster.get("Pod", "p")["status"]["reason"] == "DeadlineExceeded"

    in_embedded_cluster(story)


def test_on_a_stopped_node_nothing_happens_until_it_is_back() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(pod(annotations={"podium.dev/duration": "10s"}, restartPolicy="Never"))
        await cluster.until(lambda: cluster.phases() == {"p": "Running"})
        cluster.kubelets.stop_node("node-0")
        await asyncio.sleep(30)
        assert cluster.phases() == {"p": "Running"}
        cluster.kubelets.start_node("node-0")
        await asyncio.sleep(1)
        assert cluster.phases() == {"p": "Succeeded"}

    in_embedded_cluster(story, nodes=1)


def test_bad_annotations_are_told_as_an_event() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(pod(annotations={"podium.dev/duration": "soon"}))
        await cluster.until(lambda: cluster.phases() == {"p": "Running"})
        told = [message for name, reason, message in cluster.events() if reason == "InvalidAnnotation"]
        assert told[0].startswith('annotation podium.dev/duration: "soon" cannot be read; write a duration')

    in_embedded_cluster(story)


def test_two_runs_with_one_seed_write_the_same_history_and_another_seed_another() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(deployment(replicas=5))
        wishes = {"podium.dev/duration": "exp(20s)", "podium.dev/exit-code": "1@0.3"}
        cluster.create(job(annotations=wishes, parallelism=3, completions=8, backoffLimit=20))
        await asyncio.sleep(20)
        cluster.kubelets.stop_node("node-1")
        cluster.change("Deployment", "web", lambda obj: obj["spec"].update(replicas=2))
        await asyncio.sleep(400)

    first, second = (in_embedded_cluster(story, seed=11).history for _ in range(2))
    assert len(first) > 150
    assert first == second
    assert in_embedded_cluster(story, seed=12).history != first


def test_a_process_that_takes_over_a_stored_cluster_runs_its_pods_on() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(pod(annotations={"podium.dev/duration": "30s"}, restartPolicy="Never"))
        await cluster.until(lambda: cluster.phases() == {"p": "Running"})
        await cluster.kubelets.stop()
        await cluster.controllers.stop()
        async with Kubelets(cluster.api, cluster.clock, cluster.api.context.rng) as later:
            assert sorted(later.machines) == ["node-0", "node-1", "node-2"]
            assert later.add_nodes([NodeShape(name="more")]) == ["more-0"]
            addresses = [each["address"] for node in cluster.list("Node") for each in node["status"]["addresses"][:1]]
            assert len(set(addresses)) == 4
            await cluster.until(lambda: cluster.phases() == {"p": "Succeeded"})

    in_embedded_cluster(story)


class FullDisk:
    """A write-ahead log in which nothing can be written."""

    def put(self, stored: Stored) -> None:
        raise StorageError("the disk is full")

    remove = put


def test_pods_and_leases_go_on_when_the_disk_has_room_again() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(deployment("web", replicas=2))
        await cluster.until(lambda: len(list(cluster.running())) == 2)
        cluster.create(pod("late"))
        await asyncio.sleep(0.001)  # it is bound
        cluster.delete("Pod", next(iter(cluster.running()))["metadata"]["name"])
        cluster.api.store.write_ahead = FullDisk()
        revision = cluster.api.store.revision
        await asyncio.sleep(60)
        assert cluster.api.store.revision == revision
        cluster.api.store.write_ahead = None
        renewed = cluster.get("Lease", "node-0", "kube-node-lease")["spec"]["renewTime"]
        await cluster.until(lambda: set(cluster.phases().values()) == {"Running"} and len(cluster.phases()) == 3)
        await cluster.until(
            lambda: cluster.get("Lease", "node-0", "kube-node-lease")["spec"]["renewTime"] > renewed, seconds=30
        )

    in_embedded_cluster(story, nodes=1)
