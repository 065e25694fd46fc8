"""`podium annotate` on a real API server: usage from a real Prometheus, allocation from the pods."""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import yaml

from podium.cluster import Nodes
from podium.framework import Cycle
from podium.kube import Node
from podium.kube.meta import format_time, parse_time
from podium_plugins.pigeon import PigeonHoling
from podium_plugins.safe import SafeBalance, SafeOverload
from tests.podium.cli.command import Ran, podium
from tests.podium.plugins.ask import raw_scores, refusals
from tools.kit.builders import build, make_cluster, make_plugin
from tools.kit.builders import make_pod as a_pod
from tools.testbed import ControlPlane
from tools.testbed.exporter import Exporter
from tools.testbed.monitoring import Job, PrometheusServer, Target
from tools.testbed.objects import make_node, make_pod
from tools.testbed.podium import podium_environment
from tools.testbed.processes import Component

GIB = 2**30
IDLE = {"calm": (0.9, 0.9, 0.9, 0.9), "busy": (0.05, 0.05, 0.0, 0.1)}
"""The share of each processor's time that is idle."""
AVAILABLE = {"calm": 6 * GIB, "busy": GIB}
WINDOW = ("--window", "6s", "--step", "3s", "--tolerance", "8")


class Monitoring(NamedTuple):
    prometheus: PrometheusServer
    leaving: Exporter
    """Measures the node `leaving`, until a test stops it."""


@pytest.fixture(scope="module")
def monitoring(prometheus_programs: None) -> Iterator[Monitoring]:
    leaving = Exporter()
    leaving.start()
    try:
        with Exporter() as exporter:
            for node, processors in IDLE.items():
                for number, share in enumerate(processors):
                    exporter.grow("node_cpu_seconds_total", share, node=node, cpu=str(number), mode="idle")
                    exporter.grow("node_cpu_seconds_total", 1 - share, node=node, cpu=str(number), mode="user")
                exporter.set("node_memory_MemTotal_bytes", 8 * GIB, node=node)
                exporter.set("node_memory_MemAvailable_bytes", AVAILABLE[node], node=node)
            leaving.set("node_memory_MemTotal_bytes", 8 * GIB, node="leaving")
            leaving.set("node_memory_MemAvailable_bytes", GIB, node="leaving")
            jobs = [
                Job(name, [Target(each.address)], honor_labels=True)
                for name, each in (("staying", exporter), ("leaving", leaving))
            ]
            with PrometheusServer(jobs) as prometheus:
                # A rate is right only where its whole window has been scraped.
                counted = 'count_over_time(node_cpu_seconds_total{mode="idle",cpu="0"}[30s])'
                prometheus.poll(counted, lambda samples: len(samples) == 2 and all(value >= 11 for _, value in samples))
                yield Monitoring(prometheus, leaving)
    finally:
        leaving.stop()


def annotate(plane: ControlPlane, *arguments: str) -> Ran:
    return podium("annotate", *arguments, "--once", "--kubeconfig", str(plane.kubeconfig_path))


def annotations(plane: ControlPlane, name: str) -> dict[str, str]:
    found: dict[str, str] = plane.client.get("Node", name)["metadata"].get("annotations", {})
    return found


def versions(plane: ControlPlane) -> dict[str, str]:
    return {each["metadata"]["name"]: each["metadata"]["resourceVersion"] for each in plane.client.list("Node")}


def make_nodes(plane: ControlPlane, *names: str) -> None:
    plane.client.create_all(make_node(name) for name in names)


def test_usage_is_measured_written_once_and_read_by_those_who_place(
    empty_control_plane: ControlPlane, monitoring: Monitoring
) -> None:
    plane, prometheus = empty_control_plane, monitoring.prometheus
    make_nodes(plane, "calm", "busy", "unknown")
    ran = annotate(plane, "usage", "--prometheus", prometheus.url, *WINDOW)
    assert (ran.code, ran.out, ran.err) == (0, "2 annotated, 1 not measured\n", "")

    calm, busy = annotations(plane, "calm"), annotations(plane, "busy")
    assert int(calm["mean-free-cpu"]) == pytest.approx(3600, abs=150)
    assert int(busy["mean-free-cpu"]) == pytest.approx(200, abs=150)
    # Use that does not vary has no deviation, whatever the counters' own growth.
    assert int(calm["std-free-cpu"]) < 150
    assert (calm["mean-free-memory"], calm["std-free-memory"]) == (str(6 * GIB), "0")
    assert time.time() - parse_time(calm["usage-measured-at"]) < 60
    assert "forcasted-free-cpu" not in calm
    assert not any("free" in key for key in annotations(plane, "unknown"))
    managers = {
        each["manager"]: each["operation"] for each in plane.client.get("Node", "calm")["metadata"]["managedFields"]
    }
    assert managers["podium-annotate-usage"] == "Apply"

    before = versions(plane)
    ran = annotate(plane, "usage", "--prometheus", prometheus.url, *WINDOW)
    assert (ran.code, ran.out) == (0, "2 unchanged, 1 not measured\n")
    assert versions(plane) == before

    cluster = make_cluster(build(Node, _plain(each)) for each in plane.client.list("Node"))
    pod = a_pod(requests={"cpu": "500m"})
    overload = make_plugin(SafeOverload, cluster)
    assert [name for name, status in refusals(overload, pod, cluster).items() if status is not None] == ["busy"]
    assert raw_scores(overload, pod, cluster)["calm"] >= 90
    balance = raw_scores(make_plugin(SafeBalance, cluster), pod, cluster)
    assert balance["calm"] > balance["busy"] > balance["unknown"] == 0


def _plain(node: dict[str, Any]) -> dict[str, Any]:
    decoded: dict[str, Any] = json.loads(json.dumps(node))
    return decoded


def test_a_forecast_is_written_when_asked_for_and_taken_back_when_not(
    empty_control_plane: ControlPlane, monitoring: Monitoring
) -> None:
    plane, prometheus = empty_control_plane, monitoring.prometheus
    make_nodes(plane, "calm")
    ran = annotate(plane, "usage", "--prometheus", prometheus.url, *WINDOW, "--forecast")
    assert (ran.code, ran.err) == (0, "")
    calm = annotations(plane, "calm")
    assert calm["forcasted-free-memory"] == str(6 * GIB)
    assert 0 <= int(calm["forcasted-free-cpu"]) <= 4000
    assert annotate(plane, "usage", "--prometheus", prometheus.url, *WINDOW).out == "1 annotated\n"
    assert "forcasted-free-memory" not in annotations(plane, "calm")


def test_what_is_no_longer_measured_is_cleared_when_it_is_too_old(
    empty_control_plane: ControlPlane, monitoring: Monitoring
) -> None:
    plane, prometheus = empty_control_plane, monitoring.prometheus
    make_nodes(plane, "old", "recent", "foreign")
    now = time.time()
    for name, age in (("old", 901), ("recent", 60)):
        measured = {"mean-free-cpu": "1", "usage-measured-at": format_time(now - age), "other": "stays"}
        plane.client.patch("Node", name, {"metadata": {"annotations": measured}})
    plane.client.patch("Node", "foreign", {"metadata": {"annotations": {"mean-free-cpu": "1"}}})
    ran = annotate(plane, "usage", "--prometheus", prometheus.url, *WINDOW)
    # Nothing of what Prometheus measures is a node here.
    assert ran.code == 1
    assert ran.out == "2 not measured, 1 no longer measured and cleared\n"
    assert "none names a node" in ran.err
    assert annotations(plane, "old") == {"other": "stays"}
    assert annotations(plane, "recent")["mean-free-cpu"] == "1"
    assert annotations(plane, "foreign") == {"mean-free-cpu": "1"}


def test_a_node_whose_exporter_has_gone_is_not_spoken_of_though_much_is_remembered(
    empty_control_plane: ControlPlane, monitoring: Monitoring
) -> None:
    plane, prometheus = empty_control_plane, monitoring.prometheus
    make_nodes(plane, "calm", "leaving")
    arguments = ("usage", "--prometheus", prometheus.url, "--window", "5m", "--step", "3s")
    assert annotate(plane, *arguments).out == "2 annotated\n"
    assert annotations(plane, "leaving")["mean-free-memory"] == str(GIB)
    monitoring.leaving.stop()
    prometheus.poll('node_memory_MemTotal_bytes{node="leaving"}', lambda samples: not samples)
    assert prometheus.query('avg_over_time(node_memory_MemAvailable_bytes{node="leaving"}[5m])')
    assert "1 not measured" in annotate(plane, *arguments).out


def test_a_time_that_is_half_too_old_is_written_anew_though_nothing_moved(
    empty_control_plane: ControlPlane, monitoring: Monitoring
) -> None:
    plane, prometheus = empty_control_plane, monitoring.prometheus
    make_nodes(plane, "calm")
    arguments = ("usage", "--prometheus", prometheus.url, *WINDOW)
    annotate(plane, *arguments)
    stamp = {"metadata": {"annotations": {"usage-measured-at": format_time(time.time() - 451)}}}
    plane.client.patch("Node", "calm", stamp)
    assert annotate(plane, *arguments).out == "1 annotated\n"
    assert time.time() - parse_time(annotations(plane, "calm")["usage-measured-at"]) < 60


def test_without_prometheus_the_answer_is_a_sentence_and_1(empty_control_plane: ControlPlane) -> None:
    make_nodes(empty_control_plane, "calm")
    ran = annotate(empty_control_plane, "usage", "--prometheus", "http://127.0.0.1:9")
    assert (ran.code, ran.out) == (1, "1 not measured\n")
    assert ran.err == "prometheus http://127.0.0.1:9 refuses connections: is it running there?\n"


def test_a_missing_right_is_named(empty_control_plane: ControlPlane, monitoring: Monitoring, tmp_path: Path) -> None:
    plane = empty_control_plane
    make_nodes(plane, "calm")
    pair = plane.authority.issue("annotator")
    kubeconfig = str(plane.write_kubeconfig(tmp_path / "kubeconfig", certificate=pair))

    def run(*arguments: str) -> Ran:
        return podium("annotate", *arguments, "--once", "--kubeconfig", kubeconfig)

    rule = 'nodes cannot be annotated: the role needs the rule apiGroups: [""], resources: ["{}"], verbs: ["{}"]\n'
    prometheus = ("--prometheus", monitoring.prometheus.url)
    assert run("usage", *prometheus)[::2] == (1, rule.format("nodes", "list"))
    plane.kubectl("create", "clusterrole", "annotator", "--verb=list", "--resource=nodes")
    plane.kubectl("create", "clusterrolebinding", "annotator", "--clusterrole=annotator", "--user=annotator")
    try:
        _eventually(lambda: run("usage", *prometheus, *WINDOW)[::2] == (1, rule.format("nodes", "patch")))
        assert run("allocation")[::2] == (1, rule.format("pods", "list"))
    finally:
        plane.kubectl("delete", "clusterrole", "annotator")
        plane.kubectl("delete", "clusterrolebinding", "annotator")


def _eventually(holds: Any) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_allocation_is_counted_written_once_and_read_by_those_who_pack(empty_control_plane: ControlPlane) -> None:
    plane = empty_control_plane
    make_nodes(plane, "full", "empty")
    plane.client.create_all(make_pod(f"p{number}", cpu="855m", nodeName="full") for number in range(2))
    plane.client.create(make_pod("ended", cpu="1", nodeName="full"))
    plane.client.patch("Pod", "ended", {"status": {"phase": "Succeeded"}}, subresource="status")
    ran = annotate(plane, "allocation")
    assert (ran.code, ran.out, ran.err) == (0, "2 annotated\n", "")
    full = annotations(plane, "full")
    assert (full["requested-cpu"], full["free-cpu"], full["requested-pods"]) == ("1710", "2290", "2")
    assert time.time() - parse_time(full["allocation-measured-at"]) < 60
    before = versions(plane)
    assert annotate(plane, "allocation").out == "2 unchanged\n"
    assert versions(plane) == before

    cluster = make_cluster(build(Node, _plain(each)) for each in plane.client.list("Node"))
    plugin = make_plugin(PigeonHoling, cluster, usage="annotations", objective="LOAD_BALANCE")
    rows = [cluster.row_of[name] for name in ("empty", "full")]
    scores = plugin.score(Cycle(a_pod(requests={"cpu": "1"}), cluster), Nodes(cluster, np.array(rows)))
    assert scores.tolist() == [100, 10]


def test_usage_and_allocation_own_their_keys_apart(empty_control_plane: ControlPlane, monitoring: Monitoring) -> None:
    plane = empty_control_plane
    make_nodes(plane, "calm")
    annotate(plane, "allocation")
    annotate(plane, "usage", "--prometheus", monitoring.prometheus.url, *WINDOW)
    assert annotate(plane, "allocation").out == "1 unchanged\n"
    assert {"free-cpu", "mean-free-cpu"} <= annotations(plane, "calm").keys()


DEPLOY = Path(__file__).parents[3] / "deploy" / "annotate"


@pytest.mark.parametrize("kind", ["usage", "allocation"])
def test_the_manifest_is_accepted_and_its_rights_are_enough(
    kind: str, empty_control_plane: ControlPlane, monitoring: Monitoring, tmp_path: Path
) -> None:
    plane = empty_control_plane
    file = DEPLOY / f"{kind}.yaml"
    assert file.read_text() == podium("manifest", "annotate", kind).out, f"make {file.name} anew"
    said = plane.kubectl("apply", "--dry-run=server", "-f", str(file)).splitlines()
    assert len(said) == 4
    make_nodes(plane, "calm")
    name = f"podium-annotate-{kind}"
    kubeconfig = plane.write_kubeconfig(
        tmp_path / "kubeconfig", certificate=plane.authority.issue(f"system:serviceaccount:kube-system:{name}")
    )
    plane.kubectl("apply", "-f", "-", stdin=_rights_of(file))
    options = ("--prometheus", monitoring.prometheus.url, *WINDOW) if kind == "usage" else ()
    try:
        process = start(kind, *options, kubeconfig=kubeconfig, folder=tmp_path)
        try:
            _eventually(lambda: f"{kind}-measured-at" in annotations(plane, "calm"))
        finally:
            process.stop()
        assert "forbidden" not in process.log_text()
        assert "needs the rule" not in process.log_text()
    finally:
        plane.kubectl("delete", "-f", "-", stdin=_rights_of(file))


def start(kind: str, *options: str, kubeconfig: Path, folder: Path) -> Component:
    """As a process that goes on, every second."""
    command: list[str | Path] = [sys.executable, "-m", "podium", "annotate", kind, *options]
    environment = {**podium_environment(), "ANNOTATE_FREQ": "1"}
    return Component("annotate", [*command, "--kubeconfig", kubeconfig], folder / "log", environment=environment)


def _rights_of(file: Path) -> str:
    return yaml.safe_dump_all(each for each in yaml.safe_load_all(file.read_text()) if each["kind"] != "Deployment")


def test_it_goes_on_until_told_to_stop(empty_control_plane: ControlPlane, tmp_path: Path) -> None:
    plane = empty_control_plane
    make_nodes(plane, "n")
    process = start("allocation", kubeconfig=plane.kubeconfig_path, folder=tmp_path)
    try:
        _eventually(lambda: annotations(plane, "n").get("requested-pods") == "0")
        plane.client.create(make_pod("p", nodeName="n"))
        _eventually(lambda: annotations(plane, "n").get("requested-pods") == "1")
    finally:
        process.terminate()
    assert process.wait() == 0
