"""DaemonSets on an embedded cluster in virtual time."""

import asyncio
from typing import Any

from podium_cluster.kubelets import NodeShape
from tests.podium_cluster.apiserver.embedded import Embedded, daemon_set, in_embedded_cluster, template

Object = dict[str, Any]


def places(cluster: Embedded) -> list[str]:
    return sorted(pod["spec"].get("nodeName", "") for pod in cluster.list("Pod"))


def status(cluster: Embedded) -> Object:
    found: Object = cluster.get("DaemonSet", "agent")["status"]
    return found


async def ready(cluster: Embedded, count: int) -> None:
    await cluster.until(lambda: status(cluster)["numberReady"] == status(cluster)["desiredNumberScheduled"] == count)


def test_there_is_a_pod_for_every_node_that_only_fits_there() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(daemon_set())
        await ready(cluster, 3)
        assert places(cluster) == ["node-0", "node-1", "node-2"]
        for pod in cluster.list("Pod"):
            terms = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
            field = {"key": "metadata.name", "operator": "In", "values": [pod["spec"]["nodeName"]]}
            assert terms == {"nodeSelectorTerms": [{"matchFields": [field]}]}
            tolerated = {(each["key"], each["effect"]) for each in pod["spec"]["tolerations"]}
            assert ("node.kubernetes.io/unschedulable", "NoSchedule") in tolerated
            assert ("node.kubernetes.io/unreachable", "NoExecute") in tolerated

    in_embedded_cluster(story)


def test_a_new_node_gets_one_and_a_node_that_no_longer_matches_loses_it() -> None:
    async def story(cluster: Embedded) -> None:
        pods = template({"app": "agent"}, nodeSelector={"kubernetes.io/os": "linux"})
        cluster.create(daemon_set(template=pods))
        await ready(cluster, 3)
        cluster.kubelets.add_nodes([NodeShape(name="late", count=1)])
        await ready(cluster, 4)
        cluster.change("Node", "node-1", lambda obj: obj["metadata"]["labels"].update({"kubernetes.io/os": "windows"}))
        await ready(cluster, 3)
        await cluster.until(lambda: places(cluster) == ["late-0", "node-0", "node-2"])

    in_embedded_cluster(story)


def test_a_tainted_node_gets_none_but_keeps_what_it_has_unless_the_taint_says_no_execute() -> None:
    def taint(effect: str) -> Any:
        return lambda obj: obj["spec"].update(taints=[{"key": "special", "value": "yes", "effect": effect}])

    async def story(cluster: Embedded) -> None:
        cluster.change("Node", "node-2", taint("NoSchedule"))
        cluster.create(daemon_set())
        await ready(cluster, 2)
        cluster.change("Node", "node-0", taint("NoSchedule"))
        await asyncio.sleep(10)
        assert places(cluster) == ["node-0", "node-1"]
        assert status(cluster)["numberMisscheduled"] == 1
        cluster.change("Node", "node-0", taint("NoExecute"))
        await cluster.until(lambda: places(cluster) == ["node-1"])

    in_embedded_cluster(story)


def test_an_update_replaces_one_at_a_time() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(daemon_set())
        await ready(cluster, 3)
        cluster.change(
            "DaemonSet", "agent", lambda obj: obj["spec"]["template"]["spec"]["containers"][0].update(image="app:2")
        )
        while status(cluster)["observedGeneration"] != 2 or status(cluster).get("updatedNumberScheduled") != 3:
            running = [pod for pod in cluster.running() if "deletionTimestamp" not in pod["metadata"]]
            assert len(running) >= 2
            await asyncio.sleep(0.05)
        await ready(cluster, 3)
        assert {pod["spec"]["containers"][0]["image"] for pod in cluster.list("Pod")} == {"app:2"}

    in_embedded_cluster(story)


def test_with_surge_the_new_pod_is_there_before_the_old_one_goes() -> None:
    async def story(cluster: Embedded) -> None:
        rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
        cluster.create(daemon_set(updateStrategy=rolling))
        await ready(cluster, 3)
        cluster.change(
            "DaemonSet", "agent", lambda obj: obj["spec"]["template"]["spec"]["containers"][0].update(image="app:2")
        )

        def updated() -> bool:
            return [p["spec"]["containers"][0]["image"] for p in cluster.list("Pod")] == ["app:2"] * 3

        while not updated():
            assert len([p for p in cluster.running() if "deletionTimestamp" not in p["metadata"]]) >= 3
            assert len(cluster.list("Pod")) <= 5
            await asyncio.sleep(0.05)

    in_embedded_cluster(story)


def test_a_failed_pod_is_replaced_and_one_that_fails_again_waits() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(daemon_set())
        await ready(cluster, 1)
        for _ in range(2):
            pod = cluster.list("Pod")[0]
            pod["status"]["phase"] = "Failed"
            cluster.api.update(cluster.kind("Pod"), pod, subresource="status")
            uid = pod["metadata"]["uid"]
            await cluster.until(lambda uid=uid: all(p["metadata"]["uid"] != uid for p in cluster.list("Pod")))  # type: ignore[misc]
            await ready(cluster, 1)
        assert any(reason == "FailedDaemonPod" for _, reason, _ in cluster.events())

    in_embedded_cluster(story, nodes=1)
