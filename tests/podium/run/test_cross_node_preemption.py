"""Preemption across nodes on a real API server: all victims go, the budget holds, and the pod starts."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.podium.run.crowd import until
from tools.testbed import ControlPlane
from tools.testbed.apiclient import Object
from tools.testbed.objects import make_node, make_pod

CONFIG = Path(__file__).parents[3] / "examples" / "config" / "cross-node-preemption.yaml"
ZONE = "topology.kubernetes.io/zone"


@pytest.fixture(scope="module")
def plane(testbed_programs: None) -> Iterator[ControlPlane]:
    with ControlPlane() as found:
        yield found


def small(name: str, node: str, app: str) -> Object:
    return make_pod(
        name,
        cpu="1",
        labels={"app": app},
        priority=0,
        terminationGracePeriodSeconds=0,
        nodeSelector={"kubernetes.io/hostname": node},
    )


def wary(name: str, of: str) -> Object:
    """A pod of priority 10 that must not be in one zone with others."""
    term = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": of}}}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return make_pod(name, cpu="1", priority=10, affinity=affinity)


def bound(plane: ControlPlane) -> set[str]:
    return {each["metadata"]["name"] for each in plane.client.list("Pod") if each["spec"].get("nodeName")}


def message_of(plane: ControlPlane, name: str) -> str:
    conditions: list[dict[str, Any]] = plane.client.get("Pod", name)["status"].get("conditions", [])
    return next((str(each.get("message", "")) for each in conditions if each["type"] == "PodScheduled"), "")


def test_pods_on_two_nodes_make_way_unless_a_budget_forbids_it(plane: ControlPlane) -> None:
    plane.client.create_all(
        make_node(name, cpu="4", labels={ZONE: "a", "kubernetes.io/hostname": name}) for name in ("n1", "n2")
    )
    guarded = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "guarded", "namespace": "default"},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "guarded"}}},
    }
    plane.client.create(guarded)  # its status allows no disruption: no controller has counted its pods
    podium = plane.start_podium(CONFIG)
    pods = [small(f"{app}-{node}", node, app) for app in ("plain", "guarded") for node in ("n1", "n2")]
    plane.client.create_all(pods)
    until(lambda: len(bound(plane)) == 4, "all are bound", podium)
    plane.client.create(wary("stopped", "guarded"))
    until(lambda: "anti-affinity" in message_of(plane, "stopped"), "it says why it waits", podium)
    plane.client.create(wary("starts", "plain"))
    until(lambda: "starts" in bound(plane), "it starts in place of two pods", podium)
    assert bound(plane) == {"starts", "guarded-n1", "guarded-n2"}
    notes = [each["note"] for each in plane.client.list("events.k8s.io/v1/Event") if each["reason"] == "Preempted"]
    assert len(notes) == 2
    podium.stop()
