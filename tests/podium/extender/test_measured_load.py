"""The agent `load` as a process: metrics of a real Prometheus, of nodes and of pods, become points."""

import json
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from tests.podium.extender.questions import json_request
from tools.testbed import ControlPlane
from tools.testbed.exporter import Exporter
from tools.testbed.monitoring import Job, PrometheusServer, Target
from tools.testbed.objects import make_node, make_pod
from tools.testbed.podium import podium_environment
from tools.testbed.ports import free_port
from tools.testbed.processes import Component

METRICS = [
    {"query": "disk_wear", "min": 0, "max": 1},
    {"query": "cache_misses", "perPod": "sum", "weight": 3},
    {"query": "nobody_exports_this"},
]


def _until(holds: Callable[[], bool], component: Component) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, component.log_tail()
        time.sleep(0.1)


def _ask(port: int, path: str, body: Any = None) -> tuple[int, Any]:
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(json_request(f"http://127.0.0.1:{port}{path}", data), timeout=5) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as refusal:
        return refusal.code, refusal.read()
    except OSError:
        return 0, b""


def test_nodes_are_scored_by_what_is_measured_of_them_and_of_their_pods(
    empty_control_plane: ControlPlane, prometheus_programs: None, tmp_path: Path
) -> None:
    plane = empty_control_plane
    plane.client.create_all([make_node("a"), make_node("b"), make_node("c")])
    plane.client.create_all(make_pod(f"p{number}", nodeName=node) for number, node in enumerate("aab"))
    with Exporter() as exporter:
        for node, wear in {"a": 0.0, "b": 0.5, "c": 0.5}.items():
            exporter.set("disk_wear", wear, node=node)
        for number, misses in enumerate((10.0, 20.0, 5.0)):
            exporter.set("cache_misses", misses, namespace="default", pod=f"p{number}")
        with PrometheusServer([Job("given", [Target(exporter.address)], honor_labels=True)]) as prometheus:
            extender, port = _start(plane, prometheus.url, tmp_path)
            try:
                _until(lambda: _ask(port, "/version")[0] == 200, extender)
                _until(lambda: _ask(port, "/readyz")[0] == 200, extender)
                prometheus.poll("cache_misses", lambda samples: len(samples) == 3)
                question = {"Pod": make_pod("q"), "NodeNames": ["a", "b", "c"]}

                def points() -> dict[str, int]:
                    status, body = _ask(port, "/load/prioritize", question)
                    assert status == 200
                    return {each["Host"]: each["Score"] for each in json.loads(body)}

                # a: (1·1 + 3·0)/4, b: (1·½ + 3·1)/4, c has no pods: ½ of what is known of it.
                _until(lambda: points() == {"a": 3, "b": 9, "c": 5}, extender)
            finally:
                extender.stop()


def _start(plane: ControlPlane, prometheus: str, folder: Path) -> tuple[Component, int]:
    source = {"refreshInterval": "1s", "maxAge": "1m"}
    profile = {"pluginConfig": [{"name": "MeasuredLoad", "args": {"source": source, "metrics": METRICS}}]}
    header = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    config = folder / "agents.yaml"
    config.write_text(yaml.safe_dump({**header, "profiles": [profile]}))
    port = free_port()
    command: list[str | Path] = [sys.executable, "-m", "podium", "extender", "--agents", "load", "--config", config]
    command += ["--port", str(port), "--kubeconfig", plane.kubeconfig_path]
    environment = {**podium_environment(), "PROMETHEUS_ADDRESS": prometheus}
    return Component("extender", command, folder / "log", environment=environment), port
