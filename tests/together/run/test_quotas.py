"""Quotas and tolerant victims on a real API server."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from podium.controllers.catalog import definitions
from podium.kube.meta import parse_time
from tests.podium.run.crowd import until
from tools.testbed import ControlPlane
from tools.testbed.apiclient import Object
from tools.testbed.objects import make_namespace, make_node, make_pod

QUOTA = "scheduling.x-k8s.io/v1alpha1/ElasticQuota"
QUOTAS: dict[str, Any] = {
    "profiles": [
        {
            "plugins": {
                "multiPoint": {"enabled": [{"name": "CapacityScheduling"}]},
                "postFilter": {"enabled": [{"name": "CapacityScheduling"}], "disabled": [{"name": "*"}]},
            },
        }
    ]
}
TOLERATION: dict[str, Any] = {
    "profiles": [
        {
            "plugins": {
                "multiPoint": {
                    "enabled": [{"name": "PreemptionToleration"}],
                    "disabled": [{"name": "DefaultPreemption"}],
                }
            }
        }
    ]
}
SECONDS = 15


@pytest.fixture(scope="module")
def own_plane(testbed_programs: None) -> Iterator[ControlPlane]:
    with ControlPlane() as plane:
        plane.client.create(definitions()["elasticquotas"])
        until(lambda: _serves_quotas(plane), "ElasticQuotas are served")
        yield plane


@pytest.fixture
def plane(own_plane: ControlPlane) -> Iterator[ControlPlane]:
    yield own_plane
    own_plane.stop_components()
    own_plane.wipe()


def _serves_quotas(plane: ControlPlane) -> bool:
    try:
        plane.client.list(QUOTA)
    except Exception:
        return False
    return True


def quota(namespace: str, least: int, most: int) -> Object:
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "ElasticQuota",
        "metadata": {"name": namespace, "namespace": namespace},
        "spec": {"min": {"cpu": least}, "max": {"cpu": most}},
    }


def pod(namespace: str, name: str, cpu: str = "2", **spec: Any) -> Object:
    return make_pod(name, namespace, cpu=cpu, terminationGracePeriodSeconds=0, **spec)


def bound(plane: ControlPlane) -> set[str]:
    return {each["metadata"]["name"] for each in plane.client.list("Pod") if each["spec"].get("nodeName")}


def message_of(plane: ControlPlane, namespace: str, name: str) -> str:
    conditions = plane.client.get("Pod", name, namespace)["status"].get("conditions", ())
    return next((str(each.get("message", "")) for each in conditions if each["type"] == "PodScheduled"), "")


def test_two_quotas_borrow_and_reclaim(plane: ControlPlane) -> None:
    plane.client.create_all([make_namespace("q1"), make_namespace("q2"), make_node("n1", cpu="8")], in_order=True)
    plane.client.create_all([quota("q1", 4, 6), quota("q2", 4, 6)])
    podium = plane.start_podium(QUOTAS)
    plane.client.create_all(pod("q1", f"a{number}") for number in range(4))
    until(lambda: len(bound(plane)) == 3, "q1 borrows up to its max", podium)
    [waiting] = {f"a{number}" for number in range(4)} - bound(plane)
    until(lambda: "is more than Max" in message_of(plane, "q1", waiting), "the fourth is over max", podium)
    plane.client.create(pod("q2", "b1"))
    until(lambda: "b1" in bound(plane), "q2 uses what is left", podium)
    plane.client.create(pod("q2", "b2"))
    until(lambda: "b2" in bound(plane), "q2 reclaims its min", podium)
    left = bound(plane)
    assert {"b1", "b2"} < left
    assert len(left) == 4
    podium.stop()
    again = plane.start_podium(QUOTAS)
    plane.client.create(pod("q2", "b3"))
    until(lambda: "used is more than min" in message_of(plane, "q2", "b3"), "counts the same after a restart", again)
    assert bound(plane) == left


def priority_class(name: str, value: int, **annotations: str) -> Object:
    prefix = "preemption-toleration.scheduling.x-k8s.io/"
    written = {prefix + key.replace("_", "-"): text for key, text in annotations.items()}
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name, "annotations": written},
        "value": value,
    }


def test_a_tolerant_victim_is_spared_for_its_time_and_evicted_after_it(plane: ControlPlane) -> None:
    patient = priority_class("patient", 100, minimum_preemptable_priority="1000", toleration_seconds=str(SECONDS))
    plane.client.create_all([patient, priority_class("higher", 500), make_node("n1", cpu="4")], in_order=True)
    podium = plane.start_podium(TOLERATION)
    higher: dict[str, Any] = {"priorityClassName": "higher", "priority": 500}  # no admission plugin fills it in here
    plane.client.create(pod("default", "victim", "3", priorityClassName="patient", priority=100))
    until(lambda: bound(plane) == {"victim"}, "it is bound", podium)
    plane.client.create(pod("default", "preemptor", "3", **higher))
    until(lambda: "No preemption victims found" in message_of(plane, "default", "preemptor"), "it is spared", podium)
    conditions = plane.client.get("Pod", "victim")["status"]["conditions"]
    since = parse_time(next(each for each in conditions if each["type"] == "PodScheduled")["lastTransitionTime"])
    while time.time() < since + SECONDS:
        assert "victim" in bound(plane), "evicted before its time was over"
        time.sleep(0.5)
    until(lambda: "preemptor" in bound(plane), "it is evicted after its time", podium)
    assert "victim" not in bound(plane)
