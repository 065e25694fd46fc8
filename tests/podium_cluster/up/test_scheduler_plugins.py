"""The examples of the scheduler-plugins family on `podium up`, with the real kubectl: applied as they are."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.podium.cli.command import podium
from tests.podium_cluster.apiserver.kubectl import Kubectl, printed
from tests.podium_cluster.up.up_process import PodiumUp

EXAMPLES = Path(__file__).parents[3] / "examples"
TIMEOUT = "--timeout=60s"
PATIENCE = 120.0


@contextmanager
def up_with(config: str, home: Path) -> Iterator[tuple[PodiumUp, Kubectl]]:
    options = ("--port", "0", "--nodes", "0", "--workload", "none", "--config", config_file(config))
    with PodiumUp(*options, home=home) as up:
        yield up, Kubectl(up.kubeconfig, home)
        assert "Traceback" not in up.output


def config_file(name: str) -> str:
    return str(EXAMPLES / f"config/{name}.yaml")


def apply(kubectl: Kubectl, name: str) -> None:
    printed(kubectl("apply", "-f", str(EXAMPLES / f"manifests/{name}.yaml")))


def node_of(kubectl: Kubectl, pod: str) -> str:
    printed(kubectl("wait", "--for=condition=PodScheduled", TIMEOUT, f"pod/{pod}"))
    return printed(kubectl("get", "pod", pod, "-o", "jsonpath={.spec.nodeName}"))


def refusal(kubectl: Kubectl, pod: str) -> str:
    """Why a pod has no node; "" where it has one."""
    deadline = time.monotonic() + PATIENCE
    while True:
        state = printed(kubectl("get", "pod", pod, "-o", "jsonpath={.spec.nodeName}|{.status.conditions[0].message}"))
        node, _, message = state.partition("|")
        if node or message:
            return "" if node else message
        assert time.monotonic() < deadline, f"{pod} was never tried"
        time.sleep(0.2)


def test_network_overhead_refuses_what_is_too_far_and_prefers_what_is_near(
    testbed_programs: None, tmp_path: Path
) -> None:
    with up_with("network-overhead", tmp_path) as (up, kubectl):
        apply(kubectl, "app-group-nodes")
        apply(kubectl, "app-group")
        assert "shop" in printed(kubectl("get", "ag"))
        assert "nt-default" in printed(kubectl("get", "nt"))
        near = ("n1", "n2", "n3", "n4")
        for name in near:
            printed(kubectl("cordon", name))
        labels = "--labels=appgroup.diktyo.x-k8s.io=shop,appgroup.diktyo.x-k8s.io.workload=p1"
        deadline = time.monotonic() + PATIENCE
        while True:  # until the scheduler has seen the AppGroup
            for pod in ("p2-0", "p3-0", "late"):  # the peers that came with the AppGroup may be anywhere
                gone = kubectl("delete", "pod", pod, "--force", "--ignore-not-found")
                printed(gone, errors=("Immediate deletion",))
            printed(kubectl("run", "late", "--image=pause", labels))
            message = refusal(kubectl, "late")
            if message:
                break
            assert time.monotonic() < deadline, "it was never refused"
        assert "1 Node n5 does not meet several network requirements from Workload dependencies" in message
        kubeconfig = ("--kubeconfig", str(up.kubeconfig))
        explained = podium("explain", "late", *kubeconfig, "--config", config_file("network-overhead"))
        assert explained.code == 1
        assert "NetworkOverhead" in explained.out
        for name in near:
            printed(kubectl("uncordon", name))
        assert node_of(kubectl, "late") == "n1"
        order = "jsonpath={range .status.topologyOrder[*]}{.workload.selector}={.index} {end}"
        assert printed(kubectl("get", "ag", "shop", "-o", order)).split() == ["p1=1", "p2=3", "p3=2", "p4=4"]


def test_node_metadata_prefers_the_highest_rank(testbed_programs: None, tmp_path: Path) -> None:
    with up_with("node-metadata", tmp_path) as (_up, kubectl):
        apply(kubectl, "ranked-nodes")
        assert node_of(kubectl, "web-0") in ("n1", "n2", "n3", "n4")  # nodes may still have been coming
        printed(kubectl("run", "late", "--image=pause"))
        assert node_of(kubectl, "late") == "n1"


def test_seccomp_profiles_are_applied_and_read(testbed_programs: None, tmp_path: Path) -> None:
    with up_with("sy-sched", tmp_path) as (_up, kubectl):
        apply(kubectl, "seccomp-nodes")
        apply(kubectl, "seccomp-profiles")
        assert node_of(kubectl, "worker-0") == "n3"
        assert "worker" in printed(kubectl("get", "sp"))
