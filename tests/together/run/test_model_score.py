"""ModelScore in earnest, on a real API server: a model server that dies, hangs or talks nonsense costs no pod, and
Podium stays ready, keeps its lease and heeds SIGTERM meanwhile."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podium_lab.models.schema import NODE
from tests.podium.run.crowd import until
from tests.podium_lab.model_score.servers import ModelServer
from tools.testbed import Component, ControlPlane
from tools.testbed.monitoring import Job, NodeExporter, PrometheusServer, Target
from tools.testbed.objects import make_node, make_pod
from tools.testbed.podium import podium_probe

pytestmark = pytest.mark.testbed
LEASE = {"leaderElect": True, "resourceName": "model", "resourceNamespace": "default"}
PODS = 4
"""Pods of each phase: fewer than failures that open the breaker, which stays open for 30 s."""


@pytest.fixture
def server() -> Iterator[ModelServer]:
    found = ModelServer()
    yield found
    found.kill()


def config(url: str, log: Path, **args: Any) -> dict[str, Any]:
    given = {"url": url, "model": "m", "log": str(log), "deadline": "10s", **args}
    return {
        "leaderElection": {**LEASE, "leaseDuration": "6s", "renewDeadline": "5s", "retryPeriod": "1s"},
        "profiles": [
            {
                "schedulerName": "default-scheduler",
                "plugins": {"multiPoint": {"enabled": [{"name": "ModelScore", "weight": 10}]}},
                "pluginConfig": [{"name": "ModelScore", "args": given}],
            }
        ],
    }


NODES = ("node-0", "node-1")
FAR = '1000 * (0.05 + 0.45 * (0 * node_load1{node="node-0"} + 1) or 0.05 + 0 * node_load1{node="node-1"})'
"""500 ms for the first node, 50 ms for the second: what exporters of this machine can't tell apart is made up."""


@pytest.mark.usefixtures("prometheus_programs")
def test_connections_and_latency_come_from_prometheus(
    empty_control_plane: ControlPlane, server: ModelServer, tmp_path: Path
) -> None:
    """A model sees how many connections each node has, and a pod with a hard limit keeps off the far node."""
    seen: list[Any] = []
    server.score = lambda tensors: [seen.append(tensors["nodes"][0]), *([0.0] * tensors["mask"].shape[1])][1:]  # type: ignore[func-returns-value]
    client = empty_control_plane.client
    for name in NODES:
        client.create(make_node(name, cpu="32"))
    with NodeExporter(collectors=("netstat", "loadavg")) as exporter:
        targets = [Target(exporter.address, {"node": name}) for name in NODES]
        with PrometheusServer([Job("nodes", targets)]) as prometheus:
            prometheus.poll("node_netstat_Tcp_CurrEstab and on (node) node_load1", lambda found: len(found) == 2)
            source = {"address": prometheus.url, "refreshInterval": "1s", "maxAge": "60s"}
            settings = config(server.url, tmp_path / "decisions.jsonl", source=source, policy="least-connections")
            settings["profiles"][0]["plugins"]["multiPoint"]["enabled"].append({"name": "LatencyAware"})
            latency = {"query": FAR, "freshFor": "60s", "source": source}
            settings["profiles"][0]["pluginConfig"].append({"name": "LatencyAware", "args": latency})
            podium = empty_control_plane.start_podium(settings)

            def metrics_are_known() -> bool:
                client.create(make_pod(f"any-{len(seen)}-{time.monotonic_ns()}", cpu="1m"))
                return bool(seen) and bool((seen[-1][:, NODE.index("connections-known")] == 1).all())

            until(metrics_are_known, "the model is given connections", podium)
            for number in range(PODS):
                pod = make_pod(f"near-{number}", cpu="1")
                pod["metadata"]["annotations"] = {"podium.dev/latency-hard": "100ms"}
                client.create(pod)

            def places() -> list[str]:
                near = [pod for pod in client.list("Pod") if pod["metadata"]["name"].startswith("near-")]
                return [pod["spec"]["nodeName"] for pod in near if pod["spec"].get("nodeName")]

            until(lambda: len(places()) == PODS, "the pods are bound", podium)
            assert set(places()) == {"node-1"}


class Cluster:
    """A control plane with four nodes, and Podium with a model."""

    def __init__(self, plane: ControlPlane, server: ModelServer, log: Path, **args: Any) -> None:
        self.client = plane.client
        for number in range(4):
            self.client.create(make_node(f"node-{number}", cpu="32"))
        self.podium: Component = plane.start_podium(config(server.url, log, **args))
        self._log = log

    def place(self, prefix: str) -> list[str]:
        """Who decided about some pods, once they are bound."""
        for number in range(PODS):
            self.client.create(make_pod(f"{prefix}-{number}", cpu="1"))
        until(lambda: len(self._bound(prefix)) == PODS, f"the pods {prefix} are bound", self.podium)
        lines = (json.loads(line) for line in self._log.read_text().splitlines())
        return [line["source"] for line in lines if line["pod"].startswith(f"default/{prefix}") and "source" in line]

    def _bound(self, prefix: str) -> list[str]:
        pods = self.client.list("Pod")
        return [
            pod["metadata"]["name"]
            for pod in pods
            if pod["metadata"]["name"].startswith(prefix) and pod["spec"].get("nodeName")
        ]

    def renewed(self) -> str:
        """When the lease was renewed last."""
        (lease,) = self.client.list("coordination.k8s.io/v1/Lease", "default")
        return str(lease["spec"]["renewTime"])


def test_no_pod_is_lost_to_a_model_server_that_dies_or_talks_nonsense(
    empty_control_plane: ControlPlane, server: ModelServer, tmp_path: Path
) -> None:
    cluster = Cluster(empty_control_plane, server, tmp_path / "decisions.jsonl")
    well = server.score
    assert cluster.place("first") == ["model"] * PODS
    for name, reason, behaviour in (
        ("nan", "nan", {"score": lambda _tensors: [float("nan")] * 4}),
        ("count", "schema", {"score": lambda _tensors: [1.0]}),
        ("flood", "exception", {"endless": True}),
        ("half", "exception", {"raw": b'HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\n{"outputs"'}),
    ):
        for attribute, value in behaviour.items():
            setattr(server, attribute, value)
        assert cluster.place(name) == [reason] * PODS
        server.score, server.endless, server.raw = well, False, None
        assert cluster.place(f"after-{name}") == ["model"] * PODS
    port = server.port
    server.kill()
    assert cluster.place("dead") == ["no_model"] * PODS
    again = ModelServer(port=port)
    try:
        assert cluster.place("last") == ["model"] * PODS
    finally:
        again.kill()
    assert cluster.podium.running


def test_a_model_server_that_hangs_holds_neither_readiness_nor_lease_nor_the_end(
    empty_control_plane: ControlPlane, server: ModelServer, tmp_path: Path
) -> None:
    cluster = Cluster(empty_control_plane, server, tmp_path / "decisions.jsonl", deadline="200ms")
    cluster.place("first")
    server.delay = 5.0
    before = cluster.renewed()
    assert set(cluster.place("slow")) <= {"timeout", "breaker_open"}
    assert len(cluster.place("later")) == PODS
    with podium_probe(cluster.podium) as ready:
        assert ready()
    until(lambda: cluster.renewed() > before, "the lease is renewed", cluster.podium)
    for number in range(20):
        cluster.client.create(make_pod(f"end-{number}", cpu="1"))
    began = time.monotonic()
    cluster.podium.terminate()
    assert cluster.podium.wait(30.0) == 0
    assert time.monotonic() - began < 20.0
    server.delay = 0.0
