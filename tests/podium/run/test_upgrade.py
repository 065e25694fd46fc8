"""The API server is upgraded from one minor to the next under a running `podium run`."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.podium.run.crowd import until
from tools.testbed import ControlPlane
from tools.testbed.build import is_built
from tools.testbed.objects import make_node, make_pod

OLD, NEW = "1.36", "1.37"
CHANGED = f"the API server is of another minor now: deciding as Kubernetes {NEW}, not {OLD}"
NO_HELP = "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
NO_ROOM = "0/2 nodes are available: 2 Insufficient cpu."


@pytest.fixture
def plane(testbed_programs: None) -> Iterator[ControlPlane]:
    missing = [minor for minor in (OLD, NEW) if not is_built(minor)]
    if missing:
        pytest.skip(f"Kubernetes {missing[0]} is not built: python -m tools.testbed.build kubernetes-{missing[0]}")
    with ControlPlane(kubernetes=OLD) as plane:
        yield plane


def message(plane: ControlPlane, name: str) -> str:
    conditions = plane.client.get("Pod", name)["status"].get("conditions", ())
    return next((each["message"] for each in conditions if each["type"] == "PodScheduled"), "")


def bound(plane: ControlPlane) -> set[str]:
    return {pod["metadata"]["name"] for pod in plane.client.list("Pod") if pod["spec"].get("nodeName")}


def test_rules_follow_an_upgraded_api_server_and_no_pod_is_lost(plane: ControlPlane) -> None:
    plane.client.create_all(make_node(f"n{number}", cpu="4") for number in range(2))
    podium = plane.start_podium()
    plane.client.create_all([*(make_pod(f"before-{number}", cpu="1") for number in range(4)), make_pod("big", cpu="9")])
    until(lambda: len(bound(plane)) == 4, "pods are bound by the old rules", podium)
    until(
        lambda: message(plane, "big") == f"{NO_ROOM} no new claims to deallocate, {NO_HELP}",
        "a pod that fits nowhere says so in the words of the old minor",
        podium,
    )
    plane.restart_apiserver(NEW)
    plane.client.create_all(make_pod(f"after-{number}", cpu="1") for number in range(3))
    until(lambda: CHANGED in podium.log_text(), "the rules follow", podium)
    until(lambda: len(bound(plane)) == 7, "pods that came meanwhile are bound", podium)
    until(
        lambda: message(plane, "big") == f"{NO_ROOM} {NO_HELP}",
        "the pod that waited is tried again, in the words of the new minor",
        podium,
    )
    assert podium.log_text().count(CHANGED) == 1
    plane.client.create(make_node("n9", cpu="16"))
    until(lambda: "big" in bound(plane), "the pod that waited is bound", podium)
    assert len(bound(plane)) == 8
