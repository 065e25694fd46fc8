"""The Helm chart on a real API server: installed, upgraded while pods come, and uninstalled without a trace.

There is no kubelet: the containers of the release's Deployments run as processes, each with a token of its service
account and the files of its ConfigMap, as they are at that time. The audit log has what became of each binding, and
what was refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from podium.controllers.catalog import definitions
from tests.deploy.helm import Release
from tests.podium.manifests.deployed import Replica, refused, used
from tests.podium.manifests.test_extender_deployed import _start_kube_scheduler
from tests.podium.run.crowd import until
from tests.together.controllers.test_on_a_cluster import POD_GROUP, custom, install, status_of
from tools.testbed import Component, ControlPlane
from tools.testbed.audit import bindings
from tools.testbed.objects import make_node, make_pod

KINDS = (
    "serviceaccounts,configmaps,secrets,services,leases,roles,rolebindings,clusterroles,clusterrolebindings,"
    "deployments,poddisruptionbudgets,networkpolicies"
)
QUOTAS = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: podium
  plugins: {multiPoint: {enabled: [{name: CapacityScheduling}]}}
"""
READ_QUOTAS = {("scheduling.x-k8s.io", "elasticquotas", verb) for verb in ("list", "watch")}
VALUES = ("--set", "extender.enabled=true,controller.enabled=true,dashboard.enabled=true")


@pytest.fixture
def plane(testbed_programs: None, helm_program: None) -> Iterator[ControlPlane]:
    with ControlPlane(audit_everything=True) as plane:
        until(lambda: "kube-system" in plane.kubectl("get", "namespaces", "-o", "name"), "namespaces are made")
        install(plane, definitions())
        yield plane


def everything(plane: ControlPlane) -> set[str]:
    return set(plane.kubectl("get", KINDS, "-A", "-o", "name").split())


def create(plane: ControlPlane, scheduler: str, names: list[str]) -> None:
    plane.client.create_all(make_pod(name, cpu="100m", schedulerName=scheduler) for name in names)


def unbound(plane: ControlPlane) -> list[str]:
    pods = plane.client.list("Pod", "default")
    return [each["metadata"]["name"] for each in pods if "nodeName" not in each["spec"]]


def test_install_upgrade_and_uninstall(plane: ControlPlane, tmp_path: Path) -> None:
    release = Release(plane, tmp_path)
    before = everything(plane)
    release.run("install", *VALUES)
    assert "deployment.apps/podium" in everything(plane) - before
    plane.client.create_all(make_node(f"n{number}", cpu="8") for number in range(4))

    def scheduler(name: str, ready: str = "") -> Component:
        return Replica(plane, "podium", tmp_path / name, ready=ready).start("podium")

    first, second = scheduler("first", "podium runs"), scheduler("second")
    controller = Replica(plane, "podium-controller", tmp_path / "controller", ready="controller podgroup runs")
    running = [controller.start("controller")]
    agents = Replica(plane, "podium-safe-congestion", tmp_path / "agents", ready="podium extender answers")
    running += [agents.start("extender-1"), agents.start("extender-2")]
    text = (tmp_path / "agents" / "scheduler.yaml").read_text()
    for number in (1, 2):
        text = text.replace(f"http://127.0.0.1:540{number}/", f"{agents.urls[f'extender-{number}']}/")
    stock = _start_kube_scheduler(plane, text, agents.kubeconfig, tmp_path)
    try:
        create(plane, "podium", [f"early-{number}" for number in range(20)])
        create(plane, "podium-safe-congestion", [f"agent-{number}" for number in range(5)])
        plane.client.create(custom(POD_GROUP, "gang", {"minMember": 1}))
        until(lambda: not unbound(plane), "all pods are bound", first, stock)
        until(lambda: bool(status_of(plane, POD_GROUP, "gang")), "the controller writes the status", *running)

        # An upgrade to a configuration with quotas, pod by pod, as a Deployment rolls, while pods come.
        (tmp_path / "quotas.yaml").write_text(QUOTAS)
        create(plane, "podium", [f"during-{number}" for number in range(20)])
        release.run("upgrade", *VALUES, "--set-file", f"scheduler.config={tmp_path / 'quotas.yaml'}")
        third = scheduler("third")
        first.stop()
        create(plane, "podium", [f"between-{number}" for number in range(20)])
        fourth = scheduler("fourth")
        second.stop()
        create(plane, "podium", [f"late-{number}" for number in range(20)])
        until(lambda: not unbound(plane), "all pods are bound", third, fourth, timeout=120)
        until(lambda: used(plane, "podium") >= READ_QUOTAS, "quotas are read by the new rights", third, fourth)
    finally:
        stock.stop()

    bound = Counter(each.pod for each in bindings(plane.audit_log) if each.succeeded)
    assert len(bound) == 85
    assert set(bound.values()) == {1}
    for account in ("podium", "podium-controller", "podium-safe-congestion"):
        assert refused(plane, account) == set()

    plane.stop_components()
    release.run("uninstall")
    assert everything(plane) - before == set()
