"""Schedulers as they are run on clusters work on the embedded API and find nothing to complain about.

The real kube-scheduler, with leader election, in JSON and in protobuf (its default), and `podium run`: they list,
watch, bind, preempt, record events and write conditions. Not a line of their logs is a warning or an error.
"""

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.podium_cluster.apiserver.server import EmbeddedServer
from tools.testbed.build import CONTROL_PLANE, programs
from tools.testbed.objects import make_node, make_pod
from tools.testbed.ports import free_port
from tools.testbed.processes import Component

COMPLAINT = re.compile(r"^[EWF]\d{4} .*|^\S+ \S+ (?:WARNING|ERROR) .*|^(?:panic|Traceback).*", re.MULTILINE)
ALWAYS = ("The manifest file is empty, ignoring.", "broadcaster already stopped")
"""What kube-scheduler prints at its start and end on every cluster."""


@pytest.fixture
def plane(testbed_programs: None) -> Iterator[EmbeddedServer]:
    with EmbeddedServer() as server:
        yield server


def configuration(plane: EmbeddedServer, **connection: Any) -> Path:
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(plane.kubeconfig_path), **connection},
        "leaderElection": {"leaderElect": True},
    }
    path = plane.folder / "scheduler.yaml"
    path.write_text(yaml.safe_dump(config))
    return path


def kube_scheduler(plane: EmbeddedServer, **connection: Any) -> Component:
    command = [
        str(programs(*CONTROL_PLANE)["kube-scheduler"]),
        f"--config={configuration(plane, **connection)}",
        f"--authentication-kubeconfig={plane.kubeconfig_path}",
        f"--authorization-kubeconfig={plane.kubeconfig_path}",
        "--authentication-skip-lookup",  # the embedded API has no certificates of clients that could be looked up
        f"--cert-dir={plane.folder}",
        "--bind-address=127.0.0.1",
        f"--secure-port={free_port()}",
        "--v=2",
    ]
    return Component("kube-scheduler", command, plane.folder / "scheduler.log")


def podium_run(plane: EmbeddedServer) -> Component:
    command = [sys.executable, "-m", "podium", "run", f"--config={configuration(plane)}", "--secure-port=0"]
    return Component("podium", command, plane.folder / "scheduler.log")


SCHEDULERS: dict[str, Callable[[EmbeddedServer], Component]] = {
    "kube-scheduler in JSON": lambda plane: kube_scheduler(plane, contentType="application/json"),
    "kube-scheduler in protobuf": kube_scheduler,
    "podium run": podium_run,
}


@pytest.mark.parametrize("name", SCHEDULERS)
def test_pods_are_scheduled_without_a_complaint(plane: EmbeddedServer, name: str) -> None:
    client = plane.client
    zone = "topology.kubernetes.io/zone"
    client.create_all([make_node(f"n{number}", cpu="2", labels={zone: f"z{number % 2}"}) for number in range(4)])
    client.create(
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 9}
    )
    scheduler = SCHEDULERS[name](plane)
    try:
        spread = {
            "maxSkew": 1,
            "topologyKey": zone,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}},
        }
        web = [
            make_pod(f"web-{number}", labels={"app": "web"}, cpu="100m", topologySpreadConstraints=[spread])
            for number in range(10)
        ]
        large = [make_pod(f"low-{number}", cpu="1500m", terminationGracePeriodSeconds=0) for number in range(4)]
        client.create_all([*web, *large, make_pod("never", cpu="100")])
        client.poll("Pod", lambda pods: sum("nodeName" in pod["spec"] for pod in pods) == 14)
        pods = client.poll("Pod", lambda pods: any(_refusal(pod) for pod in pods))
        assert [_refusal(pod)[:45] for pod in pods if _refusal(pod)] == [
            "0/4 nodes are available: 4 Insufficient cpu. "
        ]
        client.create(make_pod("high", cpu="1500m", priorityClassName="high"))
        client.poll("Pod", lambda pods: any(_bound(pod, "high") for pod in pods))
        assert len([pod for pod in client.list("Pod") if pod["metadata"]["name"].startswith("low-")]) == 3
        lease = client.get("coordination.k8s.io/v1/Lease", "kube-scheduler", "kube-system")
        assert lease["spec"]["holderIdentity"]
        reasons = {"Scheduled", "FailedScheduling", "Preempted"}
        client.poll("v1/Event", lambda events: reasons <= {event["reason"] for event in events})
    finally:
        scheduler.stop(grace=10)
    found = COMPLAINT.findall(scheduler.log_text())
    complaints = [line for line in found if not any(known in line for known in ALWAYS)]
    assert not complaints, "\n".join(complaints)


def _refusal(pod: dict[str, Any]) -> str:
    """What the scheduler wrote into a pod that fits nowhere."""
    conditions = pod["status"].get("conditions", ())
    return "".join(
        each["message"] for each in conditions if each["type"] == "PodScheduled" and each["status"] == "False"
    )


def _bound(pod: dict[str, Any], name: str) -> bool:
    return pod["metadata"]["name"] == name and "nodeName" in pod["spec"]
