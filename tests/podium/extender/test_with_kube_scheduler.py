"""The real kube-scheduler v1.36 places pods through Podium.

One kube-scheduler has all the extenders; a pod names those it is to go through by the resources they manage. Left to
itself, kube-scheduler would take the node `risky`, which is the largest.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from tests.podium.extender.beside_scheduler import asked, entry, managed, metrics_of, start_extender, status_of
from tests.podium.extender.questions import args
from tools.kit.builders import make_pod
from tools.testbed import ApiError, ControlPlane
from tools.testbed.ports import LOOPBACK

Obj = dict[str, Any]
RISK = "node(s) had a risk of cpu overload above 30 percent"


def node(name: str, cpu: int, **annotations: str) -> Obj:
    written = {key.replace("_", "-"): value for key, value in annotations.items()}
    allocatable = {"cpu": str(cpu), "memory": "16Gi", "pods": "20"}
    metadata = {"name": name, "annotations": written, "labels": {"kubernetes.io/hostname": name}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": {"allocatable": allocatable}}


NODES = [
    node("quiet", 4, mean_free_cpu="3600", std_free_cpu="40", congestion_factor="100"),
    node("calm", 4, mean_free_cpu="1600", std_free_cpu="400", congestion_factor="10"),
    node("risky", 32, mean_free_cpu="900", std_free_cpu="400", congestion_factor="100"),
]


class Bed:
    """The control plane with a kube-scheduler and its extenders."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self.client = plane.client
        self.client.create_all(NODES)
        pair = plane.authority.issue("extender", hosts=[LOOPBACK])
        user = plane.authority.issue("system:kube-scheduler")
        ca = plane.ca_path
        tls = ("--tls-cert-file", pair.certificate, "--tls-private-key-file", pair.key, "--client-ca-file", ca)
        self.extender = start_extender(plane, "safe,congestion", "--bind")
        self.blind = start_extender(plane, "safe", watch=False)
        self.guarded = start_extender(plane, "safe", *tls)
        self.slow = start_extender(plane, "safe")
        self._closed = socket.create_server((LOOPBACK, 0))
        nobody = f"http://{LOOPBACK}:{self._closed.getsockname()[1]}/safe"
        self._closed.close()
        both, names = ("filter", "prioritize"), {"nodeCacheCapable": True}
        shows = {"caFile": str(ca), "certFile": str(user.certificate), "keyFile": str(user.key)}
        urls = {each: f"{each.url}/safe" for each in (self.extender, self.blind, self.guarded, self.slow)}
        scheduler = f"{self.extender.url}/scheduler"
        self.scheduler = plane.start_scheduler(
            {
                "extenders": [
                    entry("names", urls[self.extender], *both, **names),
                    entry("whole", urls[self.extender], *both),
                    entry("unwatched", urls[self.blind], *both),
                    entry("congestion", f"{self.extender.url}/congestion", "prioritize", **names),
                    entry("joined", f"{self.extender.url}/safe+congestion", *both, **names),
                    entry(
                        "classic",
                        scheduler,
                        filterVerb="predicates/safe-overload",
                        prioritizeVerb="priorities/safe-overload",
                        weight=10,
                    ),
                    entry("mistaken", urls[self.blind], *both, **names),
                    entry("gone", nobody, *both, **names),
                    entry("gone-ignored", nobody, *both, **names, ignorable=True),
                    entry("gone-scores", nobody, "prioritize", **names),
                    entry("slow", urls[self.slow], *both, **names, httpTimeout="300ms"),
                    entry("slow-ignored", urls[self.slow], *both, **names, httpTimeout="300ms", ignorable=True),
                    entry("tls", urls[self.guarded], *both, **names, enableHTTPS=True, tlsConfig=shows),
                    entry(
                        "stranger", urls[self.guarded], *both, **names, enableHTTPS=True, tlsConfig={"caFile": str(ca)}
                    ),
                    entry("victims", urls[self.extender], "preempt"),
                    entry("victims-by-name", urls[self.extender], "preempt", **names),
                    entry("binder", urls[self.extender], "bind"),
                ]
            }
        )

    def create(self, name: str, *extenders: str, cpu: str = "100m", **spec: Any) -> Obj:
        requests = {"cpu": cpu, **{managed(each): "1" for each in extenders}}
        limits = {managed(each): "1" for each in extenders}
        container = {"name": "c", "image": "app", "resources": {"requests": requests, "limits": limits}}
        spec = {"containers": [container], "terminationGracePeriodSeconds": 0, **spec}
        metadata = {"name": name, "namespace": "default"}
        return self.client.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})

    def placed(self, *extenders: str, **more: Any) -> str:
        """Where a new pod goes that asks for these extenders."""
        self.create("pod", *extenders, **more)
        return str(self._wait(lambda pod: pod["spec"].get("nodeName")))

    def refused(self, *extenders: str, **more: Any) -> str:
        """Why a new pod that asks for these extenders is not placed."""
        self.create("pod", *extenders, **more)
        return str(self._wait(_complaint))

    def _wait(self, found: Any, name: str = "pod") -> Any:
        def pod(pods: list[Obj]) -> Obj:
            return next(each for each in pods if each["metadata"]["name"] == name)

        return found(pod(self.client.poll("Pod", lambda pods: bool(found(pod(pods))))))

    def nominated(self) -> str:
        return str(self._wait(lambda pod: pod["status"].get("nominatedNodeName")))

    def clear(self) -> None:
        for pod in self.client.list("Pod"):
            with suppress(ApiError):
                self.client.delete("Pod", pod["metadata"]["name"])


def _complaint(pod: Obj) -> str:
    for condition in pod["status"].get("conditions", ()):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return str(condition["message"])
    return ""


@pytest.fixture(scope="module")
def shared_bed(control_plane: ControlPlane) -> Iterator[Bed]:
    control_plane.wipe()
    bed = Bed(control_plane)
    yield bed
    control_plane.stop_components()
    control_plane.wipe()


@pytest.fixture
def bed(shared_bed: Bed) -> Iterator[Bed]:
    yield shared_bed
    shared_bed.clear()


def test_left_to_itself_kube_scheduler_takes_the_largest_node(bed: Bed) -> None:
    assert bed.placed() == "risky"


@pytest.mark.parametrize("extender", ["names", "whole", "unwatched", "classic"])
def test_safe_changes_where_a_pod_goes(bed: Bed, extender: str) -> None:
    assert bed.placed(extender) == "quiet"


@pytest.mark.parametrize("extender", ["names", "whole", "unwatched"])
def test_why_nodes_are_refused_is_told_with_the_pod(bed: Bed, extender: str) -> None:
    message = bed.refused(extender, cpu="3400m")
    assert message.startswith(f"0/3 nodes are available: 3 {RISK}."), message


@pytest.mark.parametrize("extenders", [("names", "congestion"), ("joined",)])
def test_two_agents_decide_together(bed: Bed, extenders: tuple[str, ...]) -> None:
    assert bed.placed(*extenders) == "calm"


def test_an_extender_that_is_not_there_holds_pods_back_unless_it_may_be_ignored(bed: Bed) -> None:
    assert "connection refused" in bed.refused("gone")
    bed.clear()
    assert bed.placed("gone-ignored") == "risky"


def test_scores_that_nobody_gives_do_not_count(bed: Bed) -> None:
    assert bed.placed("gone-scores") == "risky"


def test_an_error_in_the_answer_is_told_with_the_pod(bed: Bed) -> None:
    assert "NodeNames came without Nodes, but no cluster is watched here" in bed.refused("mistaken")


def test_an_answer_that_takes_too_long_is_none(bed: Bed) -> None:
    bed.slow.pause()
    try:
        assert bed.placed("slow-ignored") == "risky"
        bed.clear()
        assert "deadline exceeded" in bed.refused("slow")
    finally:
        bed.slow.resume()
    bed.clear()
    assert bed.placed("slow") == "quiet"


def test_a_certificate_opens_what_is_closed_to_strangers(bed: Bed) -> None:
    assert bed.placed("tls") == "quiet"
    bed.clear()
    assert "code 401" in bed.refused("stranger")


def test_many_pods_at_once_all_go_where_the_agent_lets_them(bed: Bed) -> None:
    for number in range(12):
        bed.create(f"pod-{number}", *("names", "whole")[: 1 + number % 2])
    pods = bed.client.poll("Pod", lambda pods: all(pod["spec"].get("nodeName") for pod in pods))
    assert {pod["spec"]["nodeName"] for pod in pods} <= {"quiet", "calm"}


@pytest.mark.parametrize("extender", ["victims", "victims-by-name"])
def test_nobody_is_evicted_for_a_node_that_the_agent_refuses(bed: Bed, extender: str) -> None:
    """Whose victim is the least important is the node that kube-scheduler would choose."""
    for name, host, cpu, priority in (("q", "quiet", "3900m", 5), ("c", "calm", "3900m", 5), ("r", "risky", "31", 1)):
        bed.create(name, cpu=cpu, nodeName=host, priority=priority)
    bed.create("pod", extender, cpu="3", priority=10)
    bed.client.poll("Pod", lambda pods: len(pods) == 3)
    gone = {"q", "c", "r"} - {pod["metadata"]["name"] for pod in bed.client.list("Pod")}
    assert gone == {"q"}


def test_without_the_agent_the_least_important_is_evicted(bed: Bed) -> None:
    for name, host, cpu, priority in (("q", "quiet", "3900m", 5), ("c", "calm", "3900m", 5), ("r", "risky", "31", 1)):
        bed.create(name, cpu=cpu, nodeName=host, priority=priority)
    assert bed.placed(cpu="3", priority=10) == "risky"


def test_a_pod_is_bound_by_the_extender(bed: Bed) -> None:
    assert bed.placed("binder", "names") == "quiet"
    line = 'podium_extender_requests_total{agent="safe",outcome="answered",verb="bind"} 1.0'
    assert line in metrics_of(bed.extender)


def test_an_extender_that_may_not_see_the_cluster_says_that_it_waits(bed: Bed) -> None:
    kubeconfig = bed.plane.folder / "stranger.kubeconfig"
    bed.plane.write_kubeconfig(kubeconfig, token="nobody knows it")
    extender = start_extender(bed.plane, "safe", "--kubeconfig", kubeconfig, ready="serving safe")
    try:
        assert status_of(extender, "GET", "/readyz") == 500
        assert status_of(extender, "GET", "/healthz") == 200
        question = args(make_pod(), names=["quiet"])
        status, answer = asked(extender, "POST", "/safe/filter", question)
        assert (status, answer["Error"]) == (200, "the cluster is not known yet: waiting for nodes")
        assert asked(extender, "POST", "/safe/prioritize", question)[0] == 503
    finally:
        extender.stop()
