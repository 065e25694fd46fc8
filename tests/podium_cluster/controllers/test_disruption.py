"""PodDisruptionBudgets: the numbers that evictions are decided by."""

import asyncio
from typing import Any

import pytest

from podium.kube.meta import format_time
from podium_cluster.apiserver.errors import StatusError
from tests.podium_cluster.apiserver.embedded import Embedded, deployment, in_embedded_cluster, template

Object = dict[str, Any]


def budget(**spec: Any) -> Object:
    selector = {"matchLabels": {"app": "web"}}
    metadata = {"name": "web"}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata,
        "spec": {"selector": selector, **spec},
    }


def numbers(cluster: Embedded) -> tuple[int, int, int, int]:
    status = cluster.get("PodDisruptionBudget", "web")["status"]
    return status["disruptionsAllowed"], status["currentHealthy"], status["desiredHealthy"], status["expectedPods"]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"minAvailable": 3}, (1, 4, 3, 4)),
        ({"minAvailable": "60%"}, (1, 4, 3, 4)),
        ({"maxUnavailable": 1}, (1, 4, 3, 4)),
        ({"maxUnavailable": "50%"}, (2, 4, 2, 4)),
        ({"minAvailable": 9}, (0, 4, 9, 4)),
    ],
)
def test_so_many_may_be_evicted(spec: Object, expected: tuple[int, int, int, int]) -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(budget(**spec))
        cluster.create(deployment(replicas=4))
        await cluster.until(lambda: numbers(cluster) == expected)
        condition = cluster.get("PodDisruptionBudget", "web")["status"]["conditions"][0]
        assert condition["reason"] == ("SufficientPods" if expected[0] else "InsufficientPods")

    in_embedded_cluster(story)


def test_a_budget_without_pods_allows_nothing() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(budget(minAvailable=0))
        await cluster.until(lambda: "conditions" in cluster.get("PodDisruptionBudget", "web")["status"])
        assert numbers(cluster) == (0, 0, 0, 0)

    in_embedded_cluster(story)


def test_the_scale_of_pods_that_nobody_scales_is_not_known() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(budget(maxUnavailable=1))
        owner = cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "owner"}})
        pod = {"apiVersion": "v1", "kind": "Pod", **template({"app": "web"})}
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
        pod["metadata"] |= {"name": "odd", "ownerReferences": [{**reference, "controller": True}]}
        cluster.create(pod)
        await cluster.until(
            lambda: (
                cluster.get("PodDisruptionBudget", "web")["status"].get("conditions", [{}])[0].get("reason")
                == "SyncFailed"
            )
        )

    in_embedded_cluster(story)


def test_a_pod_that_somebody_is_about_to_evict_does_not_count_until_it_turns_out_to_stay() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(budget(minAvailable=3))
        cluster.create(deployment(replicas=4))
        await cluster.until(lambda: numbers(cluster)[0] == 1)
        found = cluster.get("PodDisruptionBudget", "web")
        name = cluster.list("Pod")[0]["metadata"]["name"]
        found["status"] |= {"disruptedPods": {name: format_time(cluster.clock.now())}, "disruptionsAllowed": 0}
        cluster.api.update(cluster.kind("PodDisruptionBudget"), found, subresource="status")
        await asyncio.sleep(100)
        assert numbers(cluster) == (0, 3, 3, 4)
        await asyncio.sleep(30)
        assert numbers(cluster) == (1, 4, 3, 4)

    in_embedded_cluster(story)


def test_evictions_stop_where_the_budget_ends_and_go_on_when_new_pods_are_ready() -> None:
    async def story(cluster: Embedded) -> None:
        cluster.create(budget(minAvailable=3))
        cluster.create(deployment(replicas=4))
        await cluster.until(lambda: numbers(cluster)[0] == 1)
        first, second, *_ = [pod["metadata"]["name"] for pod in cluster.list("Pod")]
        cluster.api.evict("default", first)
        with pytest.raises(StatusError) as refused:
            cluster.api.evict("default", second)
        assert refused.value.code == 429
        await cluster.until(lambda: numbers(cluster) == (1, 4, 3, 4))
        cluster.api.evict("default", second)

    in_embedded_cluster(story)
