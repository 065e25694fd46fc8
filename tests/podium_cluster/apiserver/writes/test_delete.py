"""Deletions: at once, after a grace period, or when the last finalizer is gone."""

import random
from typing import Any

import pytest

from podium.framework.clock import ManualClock
from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.errors import StatusError
from podium_cluster.apiserver.kinds import POD, built_in
from podium_cluster.apiserver.store.collection import ObjectChange

CONFIG_MAP = built_in("v1", "ConfigMap")
REPLICATION_CONTROLLER = built_in("v1", "ReplicationController")
PRIORITY_CLASS = built_in("scheduling.k8s.io/v1", "PriorityClass")
BUDGET = built_in("policy/v1", "PodDisruptionBudget")


@pytest.fixture
def api() -> EmbeddedApi:
    return EmbeddedApi(clock=ManualClock(1_700_000_000.0), rng=random.Random(1))


def make_pod(api: EmbeddedApi, *, node: str = "", phase: str = "", ready: bool = False) -> dict[str, Any]:
    containers = [{"name": "c", "image": "i"}]
    api.create(POD, {"metadata": {"name": "p", "labels": {"app": "web"}}, "spec": {"containers": containers}})
    if node:
        api.bind("default", "p", {"target": {"name": node}})
    if phase:
        conditions = [{"type": "Ready", "status": "True"}] if ready else []
        pod = api.get(POD, "default", "p")
        api.update(POD, pod | {"status": {"phase": phase, "conditions": conditions}}, subresource="status")
    return api.get(POD, "default", "p")


def exists(api: EmbeddedApi) -> bool:
    return api.store.get(POD, "default", "p") is not None


def test_a_pod_on_a_node_ends_gracefully(api: EmbeddedApi) -> None:
    make_pod(api, node="n")
    going = api.delete(POD, "default", "p")["metadata"]
    assert going["deletionGracePeriodSeconds"] == 30
    assert going["deletionTimestamp"] == "2023-11-14T22:13:50Z"
    assert going["generation"] == 2
    assert exists(api)


@pytest.mark.parametrize(("node", "phase"), [("", ""), ("n", "Succeeded"), ("n", "Failed")])
def test_a_pod_that_does_not_run_goes_at_once(api: EmbeddedApi, node: str, phase: str) -> None:
    make_pod(api, node=node, phase=phase)
    api.delete(POD, "default", "p")
    assert not exists(api)


def test_a_grace_period_can_be_shortened_and_not_prolonged(api: EmbeddedApi) -> None:
    make_pod(api, node="n")
    api.delete(POD, "default", "p")
    assert api.delete(POD, "default", "p", grace_seconds=60)["metadata"]["deletionGracePeriodSeconds"] == 30
    shorter = api.delete(POD, "default", "p", grace_seconds=5)["metadata"]
    assert (shorter["deletionGracePeriodSeconds"], shorter["deletionTimestamp"]) == (5, "2023-11-14T22:13:25Z")
    api.delete(POD, "default", "p", grace_seconds=0)
    assert not exists(api)


def test_a_pod_that_is_going_is_seen_to_go(api: EmbeddedApi) -> None:
    make_pod(api, node="n")
    seen: list[str] = []

    def note(change: ObjectChange) -> None:
        seen.append(change.type)

    api.store.listen(note, POD)
    api.delete(POD, "default", "p", grace_seconds=0)
    assert seen == ["MODIFIED", "DELETED"]


def test_finalizers_keep_an_object_until_the_last_is_gone(api: EmbeddedApi) -> None:
    api.create(CONFIG_MAP, {"metadata": {"name": "a", "finalizers": ["example.com/one", "example.com/two"]}})
    going = api.delete(CONFIG_MAP, "default", "a")
    assert going["metadata"]["deletionGracePeriodSeconds"] == 0
    going["metadata"]["finalizers"] = ["example.com/two"]
    going = api.update(CONFIG_MAP, going)
    with pytest.raises(StatusError, match="no new finalizers can be added if the object is being deleted"):
        api.update(CONFIG_MAP, {**going, "metadata": {**going["metadata"], "finalizers": ["example.com/new"]}})
    going["metadata"]["finalizers"] = []
    api.update(CONFIG_MAP, going)
    assert api.store.get(CONFIG_MAP, "default", "a") is None


@pytest.mark.parametrize(
    ("propagation", "finalizers"),
    [("Foreground", ["foregroundDeletion"]), ("Orphan", ["orphan"]), ("Background", None)],
)
def test_how_dependents_go_is_written_as_a_finalizer(
    api: EmbeddedApi, propagation: str, finalizers: list[str] | None
) -> None:
    api.create(CONFIG_MAP, {"metadata": {"name": "a"}})
    left = api.delete(CONFIG_MAP, "default", "a", propagation=propagation)
    assert left["metadata"].get("finalizers") == finalizers
    assert (api.store.get(CONFIG_MAP, "default", "a") is None) == (finalizers is None)


def test_replication_controllers_orphan_their_pods_unless_told_otherwise(api: EmbeddedApi) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    api.create(REPLICATION_CONTROLLER, {"metadata": {"name": "r"}, "spec": {"template": template}})
    assert api.delete(REPLICATION_CONTROLLER, "default", "r")["metadata"]["finalizers"] == ["orphan"]


def test_preconditions_must_hold(api: EmbeddedApi) -> None:
    made = api.create(CONFIG_MAP, {"metadata": {"name": "a"}})
    uid, version = made["metadata"]["uid"], made["metadata"]["resourceVersion"]
    with pytest.raises(
        StatusError, match=rf"the UID in the precondition \(x\) does not match the UID in record \({uid}"
    ):
        api.delete(CONFIG_MAP, "default", "a", uid="x")
    with pytest.raises(StatusError, match="The object might have been modified"):
        api.delete(CONFIG_MAP, "default", "a", resource_version="1")
    api.delete(CONFIG_MAP, "default", "a", uid=uid, resource_version=version)


def test_a_dry_run_deletes_nothing(api: EmbeddedApi) -> None:
    make_pod(api, node="n")
    assert "deletionTimestamp" in api.delete(POD, "default", "p", dry_run=True)["metadata"]
    assert "deletionTimestamp" not in api.get(POD, "default", "p")["metadata"]


def test_priority_classes_of_the_system_stay(api: EmbeddedApi) -> None:
    with pytest.raises(StatusError, match="this is a system priority class and cannot be deleted"):
        api.delete(PRIORITY_CLASS, None, "system-node-critical")


def budget(api: EmbeddedApi, **status: int) -> None:
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    made = api.create(BUDGET, {"metadata": {"name": "b"}, "spec": spec})
    status = {"observedGeneration": 1, "disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, **status}
    api.update(BUDGET, made | {"status": {**status, "expectedPods": 1}}, subresource="status")


def test_an_eviction_uses_up_an_allowed_disruption(api: EmbeddedApi) -> None:
    make_pod(api, node="n", phase="Running", ready=True)
    budget(api, disruptionsAllowed=1, currentHealthy=2)
    api.evict("default", "p")
    status = api.get(BUDGET, "default", "b")["status"]
    assert (status["disruptionsAllowed"], list(status["disruptedPods"])) == (0, ["p"])
    pod = api.get(POD, "default", "p")
    assert "deletionTimestamp" in pod["metadata"]
    assert [each["reason"] for each in pod["status"]["conditions"] if each["type"] == "DisruptionTarget"] == [
        "EvictionByEvictionAPI"
    ]


def test_an_eviction_that_would_disrupt_too_much_is_refused_with_the_reason(api: EmbeddedApi) -> None:
    make_pod(api, node="n", phase="Running", ready=True)
    budget(api)
    with pytest.raises(StatusError) as error:
        api.evict("default", "p")
    assert (error.value.code, error.value.reason) == (429, "TooManyRequests")
    assert error.value.message == "Cannot evict pod as it would violate the pod's disruption budget."
    [cause] = error.value.status()["details"]["causes"]
    assert cause["message"] == "The disruption budget b needs 1 healthy pods and has 1 currently"


@pytest.mark.parametrize(
    ("phase", "ready", "healthy", "goes"),
    [
        ("Pending", False, 0, True),
        ("Succeeded", False, 0, True),
        ("Running", True, 1, False),
        ("Running", False, 1, True),  # it does not count as available, and the others suffice
        ("Running", False, 0, False),
    ],
)
def test_which_pods_a_budget_guards(api: EmbeddedApi, phase: str, ready: bool, healthy: int, goes: bool) -> None:
    make_pod(api, node="n", phase=phase, ready=ready)
    budget(api, currentHealthy=healthy)
    if goes:
        api.evict("default", "p", {"deleteOptions": {"gracePeriodSeconds": 0}})
        assert not exists(api)
    else:
        with pytest.raises(StatusError, match="Cannot evict pod"):
            api.evict("default", "p")
