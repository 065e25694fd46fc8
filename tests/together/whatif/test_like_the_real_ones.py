"""Capacity and drains beside the real ones: kube-scheduler, controllers and kubectl decide the same.

Each cluster is random. Podium says how many replicas fit; a Deployment of one more then ends with exactly so many pods
bound, and one that waits with the very message. A drain is carried out by kubectl, with controllers that make the pods
again; those without a node afterwards are those that Podium says find no place.
"""

import random
from collections import Counter
from collections.abc import Iterator
from threading import Thread
from typing import Any

import pytest

from podium.whatif.changes import Drain
from podium.whatif.drain import BUDGET, NO_PLACE, DrainRules
from podium.whatif.fit import FitAnswer, fit
from tools.parity.capacity_clusters import (
    CONTROLLERS,
    all_settled,
    app_of,
    deployment,
    node,
    predicted,
    refusal,
    sandbox,
    settled,
    spec_of,
    started,
    without_pending,
)
from tools.testbed import ControlPlane

CLUSTERS = 30
DRAINS = 20


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane) -> Iterator[ControlPlane]:
    control_plane.wipe()
    control_plane.start_controller_manager(CONTROLLERS)
    control_plane.start_scheduler({"percentageOfNodesToScore": 100})
    yield control_plane
    control_plane.stop_components()


def test_a_deployment_of_one_more_ends_with_exactly_so_many_bound(plane: ControlPlane) -> None:
    exact = 0
    for seed in range(CLUSTERS):
        rng = random.Random(seed)
        started(plane, rng, rng.randrange(2, 7), rng.randrange(0, 4))
        without_pending(plane)
        manifest = deployment("cap", spec_of(rng, "cap"), 1)
        answer = predicted(plane, manifest)
        assert answer.replicas <= 200, seed
        manifest["spec"]["replicas"] = answer.replicas + 1
        plane.client.create(manifest)
        pods = settled(plane, "cap", answer.replicas + 1)
        bound = Counter(pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName"))
        (left,) = [pod for pod in pods if not pod["spec"].get("nodeName")]
        assert bound.total() == answer.replicas, seed
        assert answer.stop is not None
        assert refusal(left) == answer.stop.message, seed
        exact += bound == answer.on
    assert exact >= CLUSTERS * 0.8, "the shares of nodes differ more often than ties explain"


def answered(plane: ControlPlane, name: str, **rules: Any) -> FitAnswer:
    return fit(sandbox(plane), [Drain(nodes=name)], drain_rules=DrainRules(**rules))


def test_pods_that_wait_after_a_drain_are_those_that_find_no_place(plane: ControlPlane) -> None:
    """kubectl deletes one pod after another while controllers replace them, so which replacement comes first is chance:
    where two want the last room of a node, either may get it. What waits in the end has no place for Podium either."""
    chance = 0
    for seed in range(DRAINS):
        rng = random.Random(1000 + seed)
        started(plane, rng, rng.randrange(2, 5), rng.randrange(2, 6))
        without_pending(plane)
        busy = Counter(pod["spec"]["nodeName"] for pod in plane.client.list("Pod", "default"))
        if not busy:
            continue
        name = rng.choice(sorted(busy))
        answer = answered(plane, name, disable_eviction=True)
        assert answer.drained is not None
        lost = Counter(each.pod.labels["app"] for each in answer.drained.pods if each.verdict == NO_PLACE)
        plane.kubectl("drain", name, "--ignore-daemonsets", "--disable-eviction", "--timeout=30s", "--grace-period=0")
        if without_node(all_settled(plane, busy.total())) != lost:
            plane.client.poll("Pod", lambda _pods: not any(each.after.fits for each in fit(sandbox(plane)).pods))
            chance += without_node(plane.client.list("Pod", "default")) != lost
    assert chance <= DRAINS // 4


def without_node(pods: list[dict[str, Any]]) -> Counter[str]:
    return Counter(app_of(pod) for pod in pods if not pod["spec"].get("nodeName"))


def test_a_drain_hangs_on_the_pods_that_budgets_guard(plane: ControlPlane) -> None:
    started_with_budgets(plane)
    answer = answered(plane, "n0")
    assert answer.drained is not None
    guarded = {each.pod.name for each in answer.drained.pods if each.verdict == BUDGET}
    assert guarded
    assert {each.budget for each in answer.drained.deadlock} == {"default/never"}
    drained = Thread(target=drain_and_give_up, args=(plane, "n0"))
    drained.start()
    while drained.is_alive():
        make_ready(plane, "n1")
        drained.join(0.2)
    left = {
        pod["metadata"]["name"] for pod in plane.client.list("Pod", "default") if pod["spec"].get("nodeName") == "n0"
    }
    assert left == guarded


def drain_and_give_up(plane: ControlPlane, name: str) -> None:
    plane.kubectl("drain", name, "--ignore-daemonsets", "--timeout=15s", "--grace-period=0", check=False)


def make_ready(plane: ControlPlane, name: str) -> None:
    """Say of the pods on a node what a kubelet would."""
    for pod in plane.client.list("Pod", "default"):
        conditions = pod.get("status", {}).get("conditions") or []
        if pod["spec"].get("nodeName") == name and all(each["type"] != "Ready" for each in conditions):
            ready = {"type": "Ready", "status": "True"}
            plane.client.set_status(
                {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    **pod,
                    "status": {"phase": "Running", "conditions": [*conditions, ready]},
                }
            )


def started_with_budgets(plane: ControlPlane) -> None:
    """Three Deployments on one node, ready; one of them has a budget that never allows an eviction."""
    plane.wipe()
    rng = random.Random(3)
    for name in ("n0", "n1"):
        made = node(rng, name)
        made["spec"] = {"unschedulable": name == "n1"}
        made["status"]["allocatable"] = made["status"]["capacity"] = {"cpu": "8", "memory": "16Gi", "pods": "50"}
        plane.client.create(made)
    container = {"name": "c", "image": "app", "resources": {"requests": {"cpu": "100m"}}}
    for app in ("free", "never", "some"):
        spec = {"terminationGracePeriodSeconds": 0, "containers": [container]}
        plane.client.create(deployment(app, spec, 2))
    for app, least in (("never", 2), ("some", 1)):
        budget = {"minAvailable": least, "selector": {"matchLabels": {"app": app}}}
        metadata = {"name": app, "namespace": "default"}
        plane.client.create(
            {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": budget}
        )
    for app in ("free", "never", "some"):
        settled(plane, app, 2)
    make_ready(plane, "n0")
    plane.client.poll(
        "policy/v1/PodDisruptionBudget",
        lambda budgets: all(b.get("status", {}).get("currentHealthy") == 2 for b in budgets),
        "default",
    )
    plane.client.patch("Node", "n1", {"spec": {"unschedulable": False}})
