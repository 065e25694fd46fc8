"""Promises to workloads on a real API server: who is evicted for whom, and what a killed scheduler remembers."""

import time
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from tests.live.crowd import until
from tests.testbed import Component, ControlPlane
from tests.testbed.apiclient import Object
from tests.testbed.connections import ConnectionPool
from tests.testbed.objects import make_node, make_pod
from tests.testbed.ports import LOOPBACK, free_port

MINIMUM = 3


def qos_config(minimum: str = f"{MINIMUM}s") -> dict[str, Any]:
    only = {"enabled": [{"name": "QosAware"}], "disabled": [{"name": "*"}]}
    more = {"enabled": [{"name": "QosAware"}]}
    plugins = {"queueSort": only, "postFilter": only, "reserve": more, "preBind": more, "postBind": more}
    args = {"safetyMargin": "2s", "minimumRunningTime": minimum, "acceptablePreemptionOverhead": 1.0}
    return {"profiles": [{"plugins": plugins, "pluginConfig": [{"name": "QosAware", "args": args}]}]}


@pytest.fixture(scope="module")
def own_plane(testbed_programs: None) -> Iterator[ControlPlane]:
    with ControlPlane() as plane:
        yield plane


@pytest.fixture
def plane(own_plane: ControlPlane) -> Iterator[ControlPlane]:
    own_plane.client.create(make_node("n1", cpu="2"))
    yield own_plane
    own_plane.stop_components()
    own_plane.wipe()


def pod(name: str, slo: str, controller: str = "", namespace: str = "default", **annotations: str) -> Object:
    made = make_pod(name, namespace, cpu="2", labels={"app": name}, terminationGracePeriodSeconds=0)
    made["metadata"]["annotations"] = {"slo": slo, "controller": controller or name, **annotations}
    return made


def bound(plane: ControlPlane) -> set[str]:
    return {each["metadata"]["name"] for each in plane.client.list("Pod") if each["spec"].get("nodeName")}


def tried(plane: ControlPlane, name: str) -> bool:
    """Whether the scheduler has said why the pod waits."""
    conditions = plane.client.get("Pod", name)["status"].get("conditions", ())
    return any(each["type"] == "PodScheduled" and "preemption" in each.get("message", "") for each in conditions)


def page(port: int) -> dict[str, dict[str, Any]]:
    pool = ConnectionPool(f"http://{LOOPBACK}:{port}", ca_path=None, timeout=5.0)
    try:
        answer = pool.request("GET", "/", headers={"Accept": "application/json"})
        rows: list[dict[str, Any]] = msgspec.json.decode(answer.body)
        return {row["controller"]: row for row in rows}
    finally:
        pool.close()


def test_a_controller_in_debt_preempts_one_with_slack(plane: ControlPlane) -> None:
    podium = plane.start_podium(qos_config(), flags=["--qos-port=0"])
    plane.client.create(pod("slack", "0.5"))
    until(lambda: bound(plane) == {"slack"}, "the first is bound", podium)
    plane.client.create(pod("debt", "0.9"))
    until(lambda: bound(plane) == {"debt"}, "the more important one takes its place", podium)


def test_a_pod_is_not_touched_before_its_minimum_running_time(plane: ControlPlane) -> None:
    podium = plane.start_podium(qos_config("10m"), flags=["--qos-port=0"])
    plane.client.create(pod("slack", "0.5"))
    until(lambda: bound(plane) == {"slack"}, "the first is bound", podium)
    plane.client.create(pod("debt", "1"))
    until(lambda: tried(plane, "debt"), "the second is tried", podium)
    time.sleep(2 * MINIMUM)
    assert bound(plane) == {"slack"}


def test_a_used_up_disruption_budget_protects(plane: ControlPlane) -> None:
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "keep", "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "slack"}}},
    }
    plane.client.create(budget)
    podium = plane.start_podium(qos_config(), flags=["--qos-port=0"])
    plane.client.create(pod("slack", "0.5"))
    until(lambda: bound(plane) == {"slack"}, "the first is bound", podium)
    time.sleep(MINIMUM)
    plane.client.create(pod("debt", "0.9"))
    until(lambda: tried(plane, "debt"), "the second is tried", podium)
    time.sleep(2 * MINIMUM)
    assert bound(plane) == {"slack"}
    plane.client.delete("policy/v1/PodDisruptionBudget", "keep")
    until(lambda: bound(plane) == {"debt"}, "without the budget it gives way", podium)


def test_pods_of_kube_system_are_never_touched(plane: ControlPlane) -> None:
    podium = plane.start_podium(qos_config(), flags=["--qos-port=0"])
    plane.client.create(pod("system", "0", namespace="kube-system"))
    until(lambda: bound(plane) == {"system"}, "it is bound", podium)
    plane.client.create(pod("debt", "1"))
    until(lambda: tried(plane, "debt"), "the other is tried", podium)
    time.sleep(2 * MINIMUM)
    assert bound(plane) == {"system"}


def test_a_killed_scheduler_comes_back_with_the_same_figures(plane: ControlPlane) -> None:
    port = free_port()
    podium = plane.start_podium(qos_config(), flags=[f"--qos-port={port}"])
    plane.client.create(pod("first-1", "0.5", "first"))
    until(lambda: bound(plane) == {"first-1"}, "the first is bound", podium)
    time.sleep(MINIMUM + 1)
    plane.client.create(pod("second-1", "0.9", "second"))
    until(lambda: bound(plane) == {"second-1"}, "the second takes its place", podium)
    plane.client.create(pod("first-2", "0.5", "first"))
    until(lambda: "qos-history" in str(plane.client.get("Pod", "first-2")), "what is gone is written down", podium)
    before = page(port)
    podium.kill()
    again = plane.start_podium(qos_config(), flags=[f"--qos-port={port}"])
    after = _figures(port, again, before)
    for name in ("first", "second"):
        for column in ("running_s", "waiting_s", "binding_s"):
            passed = after[name][column] - before[name][column]
            moving = column == ("waiting_s" if name == "first" else "running_s")
            assert passed >= -1 if moving else abs(passed) <= 1, (name, column, before[name], after[name])
    gone = {name: after[name]["waiting_s"] + after[name]["running_s"] + after[name]["binding_s"] for name in after}
    then = {name: before[name]["waiting_s"] + before[name]["running_s"] + before[name]["binding_s"] for name in before}
    elapsed = {name: gone[name] - then[name] for name in ("first", "second")}
    assert abs(elapsed["first"] - elapsed["second"]) <= 1, "all the time that passed is accounted for"


def _figures(port: int, podium: Component, before: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}

    def complete() -> bool:
        try:
            found.update(page(port))
        except OSError:
            return False
        return found.keys() >= before.keys()

    until(complete, "the page knows the controllers again", podium)
    return page(port)
