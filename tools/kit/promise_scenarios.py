"""Promises to workloads, played on any cluster: who is evicted for whom, and what a killed scheduler remembers.

The same scenarios run on a real API server with `podium run` (tests/podium/run) and on the cluster of `podium up`
(tests/podium_cluster/up). The cluster has one node, and each pod needs all of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from tools.testbed.apiclient import ApiClient, Object
from tools.testbed.connections import ConnectionPool
from tools.testbed.objects import make_pod
from tools.testbed.ports import LOOPBACK, free_port

MINIMUM = 3
DEADLINE = 120.0


class PromiseCluster(Protocol):
    """A cluster with one node, and a scheduler that can be started and killed."""

    starts_pods: bool
    """Whether a kubelet starts what is bound; else pods count as running from their binding on."""

    @property
    def client(self) -> ApiClient: ...

    def start(self, config: dict[str, Any], qos_port: int = 0) -> None:
        """Start the scheduler, also after it was killed; return when it is ready."""

    def kill(self) -> None:
        """End the scheduler with SIGKILL."""

    def log(self) -> str:
        """What the scheduler said last."""


def qos_config(minimum: str = f"{MINIMUM}s") -> dict[str, Any]:
    only = {"enabled": [{"name": "QosAware"}], "disabled": [{"name": "*"}]}
    more = {"enabled": [{"name": "QosAware"}]}
    plugins = {"queueSort": only, "postFilter": only, "reserve": more, "preBind": more, "postBind": more}
    args = {"safetyMargin": "2s", "minimumRunningTime": minimum, "acceptablePreemptionOverhead": 1.0}
    return {"profiles": [{"plugins": plugins, "pluginConfig": [{"name": "QosAware", "args": args}]}]}


# The scenarios


def a_controller_in_debt_preempts_one_with_slack(cluster: PromiseCluster) -> None:
    cluster.start(qos_config())
    _create(cluster, "slack", "0.5")
    _until(cluster, lambda: _bound(cluster) == {"slack"}, "the first is bound")
    _create(cluster, "debt", "0.9")
    _until(cluster, lambda: _bound(cluster) == {"debt"}, "the more important one takes its place")


def a_pod_is_not_touched_before_its_minimum_running_time(cluster: PromiseCluster) -> None:
    cluster.start(qos_config("10m"))
    _create(cluster, "slack", "0.5")
    _until(cluster, lambda: _bound(cluster) == {"slack"}, "the first is bound")
    _create(cluster, "debt", "1")
    _until(cluster, lambda: _tried(cluster, "debt"), "the second is tried")
    time.sleep(2 * MINIMUM)
    assert _bound(cluster) == {"slack"}


def a_used_up_disruption_budget_protects(cluster: PromiseCluster) -> None:
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "keep", "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "slack"}}},
    }
    cluster.start(qos_config())
    cluster.client.create(budget)
    _create(cluster, "slack", "0.5")
    _until(cluster, lambda: _bound(cluster) == {"slack"}, "the first is bound")
    time.sleep(MINIMUM)
    _create(cluster, "debt", "0.9")
    _until(cluster, lambda: _tried(cluster, "debt"), "the second is tried")
    time.sleep(2 * MINIMUM)
    assert _bound(cluster) == {"slack"}
    cluster.client.delete("policy/v1/PodDisruptionBudget", "keep")
    _until(cluster, lambda: _bound(cluster) == {"debt"}, "without the budget it gives way")


def pods_of_kube_system_are_never_touched(cluster: PromiseCluster) -> None:
    cluster.start(qos_config())
    _create(cluster, "system", "0", namespace="kube-system")
    _until(cluster, lambda: _bound(cluster) == {"system"}, "it is bound")
    _create(cluster, "debt", "1")
    _until(cluster, lambda: _tried(cluster, "debt"), "the other is tried")
    time.sleep(2 * MINIMUM)
    assert _bound(cluster) == {"system"}


def a_killed_scheduler_comes_back_with_the_same_figures(cluster: PromiseCluster) -> None:
    port = free_port()
    cluster.start(qos_config(), port)
    _create(cluster, "first-1", "0.5", "first")
    _until(cluster, lambda: _bound(cluster) == {"first-1"}, "the first is bound")
    time.sleep(MINIMUM + 1)
    _create(cluster, "second-1", "0.9", "second")
    _until(cluster, lambda: _bound(cluster) == {"second-1"}, "the second takes its place")
    _until(cluster, lambda: not cluster.starts_pods or _runs(cluster, "second-1"), "it is started")
    _create(cluster, "first-2", "0.5", "first")
    _until(cluster, lambda: "qos-history" in str(cluster.client.get("Pod", "first-2")), "what is gone is written down")
    before = page(port)
    cluster.kill()
    cluster.start(qos_config(), port)
    after = _figures(cluster, port, before)
    for name in ("first", "second"):
        for column in ("running_s", "waiting_s", "binding_s"):
            passed = after[name][column] - before[name][column]
            moving = column == ("waiting_s" if name == "first" else "running_s")
            assert passed >= -1 if moving else abs(passed) <= 1, (name, column, before[name], after[name])
    elapsed = {name: _all_time(after[name]) - _all_time(before[name]) for name in ("first", "second")}
    assert abs(elapsed["first"] - elapsed["second"]) <= 1, "all the time that passed is accounted for"


def a_task_that_succeeds_has_not_lost_its_work(cluster: PromiseCluster) -> None:
    port = free_port()
    cluster.start(qos_config(), port)
    _run_to(cluster, "done", "Succeeded")
    _run_to(cluster, "failed", "Failed")
    _until(cluster, lambda: not page(port)["failed"]["running"], "the page shows that both have ended")
    rows = page(port)
    done, failed = rows["done"], rows["failed"]
    assert done["running_s"] >= 1, done
    assert done["discarded_s"] == 0, done
    assert failed["running_s"] == 0, failed
    assert failed["discarded_s"] >= 1, failed


def values_that_cannot_be_read_stop_nothing(cluster: PromiseCluster) -> None:
    port = free_port()
    cluster.start(qos_config("10m"), port)
    counts = {"0": 0.0, "NaN": 0.8, "7": 0.8, "much": 0.8, "-1": 0.8}
    for number, slo in enumerate(counts):
        odd = {"qosMeasuring": "sideways", "acceptablePreemptionOverhead": "NaN"}
        _create(cluster, f"odd-{number}", slo, f"odd-{number}", **(odd if number % 2 else {}))
    _until(cluster, lambda: len(page(port)) == len(counts), "the page knows all of them")
    found = {name: row["slo"] for name, row in page(port).items()}
    assert found == {f"odd-{number}": value for number, value in enumerate(counts.values())}
    _until(cluster, lambda: len(_bound(cluster)) == 1, "one of them is bound")
    for number in range(len(counts)):  # the others are deleted while they are pending
        cluster.client.delete("Pod", f"odd-{number}")
    _create(cluster, "good", "0.9")
    _until(cluster, lambda: _bound(cluster) == {"good"}, "scheduling goes on")


# What they are made of


def _create(
    cluster: PromiseCluster, name: str, slo: str, controller: str = "", namespace: str = "default", **annotations: str
) -> None:
    node: Object = cluster.client.list("Node")[0]
    cpu = node["status"]["allocatable"]["cpu"]
    made = make_pod(name, namespace, cpu=cpu, labels={"app": name}, terminationGracePeriodSeconds=0)
    made["metadata"]["annotations"] = {"slo": slo, "controller": controller or name, **annotations}
    cluster.client.create(made)


def _run_to(cluster: PromiseCluster, controller: str, phase: str) -> None:
    """Have one task of a controller run for a while and end."""
    name = f"{controller}-1"
    _create(cluster, name, "0.5", controller, qosMeasuring="aggregate")
    _until(cluster, lambda: name in _bound(cluster), "it is bound")
    time.sleep(2)
    cluster.client.patch("Pod", name, {"status": {"phase": phase}}, subresource="status")


def _bound(cluster: PromiseCluster) -> set[str]:
    return {each["metadata"]["name"] for each in cluster.client.list("Pod") if each["spec"].get("nodeName")}


def _runs(cluster: PromiseCluster, name: str) -> bool:
    return bool(cluster.client.get("Pod", name)["status"].get("phase") == "Running")


def _tried(cluster: PromiseCluster, name: str) -> bool:
    """Whether the scheduler has said why the pod waits."""
    conditions = cluster.client.get("Pod", name)["status"].get("conditions", ())
    return any(each["type"] == "PodScheduled" and "preemption" in each.get("message", "") for each in conditions)


def page(port: int) -> dict[str, dict[str, Any]]:
    """The rows of the QoS page, by controller."""
    pool = ConnectionPool(f"http://{LOOPBACK}:{port}", ca_path=None, timeout=5.0)
    try:
        answer = pool.request("GET", "/", headers={"Accept": "application/json"})
        rows: list[dict[str, Any]] = msgspec.json.decode(answer.body)
        return {row["controller"]: row for row in rows}
    finally:
        pool.close()


def _figures(cluster: PromiseCluster, port: int, before: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}

    def complete() -> bool:
        try:
            found.update(page(port))
        except OSError:
            return False
        return found.keys() >= before.keys()

    _until(cluster, complete, "the page knows the controllers again")
    return page(port)


def _all_time(row: dict[str, Any]) -> float:
    return float(row["waiting_s"] + row["running_s"] + row["binding_s"])


def _until(cluster: PromiseCluster, holds: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + DEADLINE
    while not holds():
        assert time.monotonic() < end, f"not after {DEADLINE:.0f} s: {what}\n{cluster.log()}"
        time.sleep(0.1)
