"""The manifests on a real API server: accepted, and enough to run by, with no more rights than they grant."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.podium.cli.command import podium
from tests.podium.extender.questions import json_request
from tests.together.manifests.test_extender import DEPLOY, SETS
from tools.testbed import ControlPlane
from tools.testbed.objects import make_node, make_pod
from tools.testbed.podium import podium_environment
from tools.testbed.ports import free_port
from tools.testbed.processes import Component

Objects = list[dict[str, Any]]
RIGHTS = ("ServiceAccount", "ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding")


@pytest.fixture(scope="module")
def plane(testbed_programs: None) -> Iterator[ControlPlane]:
    with ControlPlane() as plane:
        _until(lambda: "kube-system" in plane.kubectl("get", "namespaces", "-o", "name"), "namespaces are made")
        yield plane


def _until(holds: Callable[[], bool], what: str, *components: Component) -> None:
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline, "\n".join([what, *(each.log_tail() for each in components)])
        time.sleep(0.1)


def objects_of(agents: str) -> Objects:
    return list(yaml.safe_load_all((DEPLOY / f"{agents.replace(',', '-')}.yaml").read_text()))


def name_of(objects: Objects) -> str:
    name: str = next(each for each in objects if each["kind"] == "ServiceAccount")["metadata"]["name"]
    return name


def kubeconfig_of(plane: ControlPlane, objects: Objects, folder: Path) -> Path:
    """For the service account, which has a certificate here instead of a token: its name is what rights go by."""
    name = name_of(objects)
    pair = plane.authority.issue(f"system:serviceaccount:kube-system:{name}")
    return plane.write_kubeconfig(folder / f"{name}.kubeconfig", certificate=pair)


def grant(plane: ControlPlane, objects: Objects, *, of_kube_scheduler: bool) -> None:
    """Create what the service account may do: all of it, or only the part that is the agents'."""
    name = name_of(objects)
    granted = [each for each in objects if each["kind"] in RIGHTS]
    if not of_kube_scheduler:
        granted = [each for each in granted if each["metadata"]["name"] == name]
    plane.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(granted))


@pytest.mark.parametrize("agents", SETS)
def test_a_real_api_server_accepts_every_object(agents: str, plane: ControlPlane) -> None:
    said = plane.kubectl("apply", "--dry-run=server", "-f", str(DEPLOY / f"{agents.replace(',', '-')}.yaml"))
    lines = said.splitlines()
    assert len(lines) == len(objects_of(agents))
    assert all(line.endswith("created (server dry run)") for line in lines), said


def start_extender(
    plane: ControlPlane, objects: Objects, number: int, kubeconfig: Path, folder: Path, **more: str
) -> tuple[Component, int]:
    """The container of an agent, as a process on a port of its own."""
    deployment = next(each for each in objects if each["kind"] == "Deployment")
    container = deployment["spec"]["template"]["spec"]["containers"][number]
    port = free_port()
    arguments = [*container["args"], "--kubeconfig", str(kubeconfig)]
    given = {each["name"]: each["value"] for each in container["env"]}
    environment = {**podium_environment(), **given, "HTTP_PORT": str(port), **more}
    name = f"{name_of(objects)}-{number}"
    command: list[str | Path] = [sys.executable, "-m", "podium", *arguments]
    return Component(name, command, folder / f"{name}.log", environment=environment), port


def status_of(port: int, path: str) -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            status: int = answer.status
            return status
    except urllib.error.HTTPError as refusal:
        return refusal.code
    except OSError:
        return 0


def points_of(port: int, path: str, labels: Mapping[str, str]) -> dict[str, int]:
    """What nodes n1 and n2 get for a pod."""
    body = json.dumps({"Pod": make_pod("asked", labels=dict(labels)), "NodeNames": ["n1", "n2"]}).encode()
    with urllib.request.urlopen(json_request(f"http://127.0.0.1:{port}{path}", body), timeout=5) as answer:
        return {each["Host"]: each["Score"] for each in json.load(answer)}


ANSWERS = "podium extender answers"


@pytest.mark.parametrize("agent", ["safe", "pigeon", "load", "reward"])
def test_an_agent_needs_no_more_than_its_own_role(agent: str, plane: ControlPlane, tmp_path: Path) -> None:
    plane.wipe()
    plane.client.create_all([make_node("n1"), make_node("n2")])
    objects = objects_of(agent)
    kubeconfig = kubeconfig_of(plane, objects, tmp_path)
    nowhere = {"PROMETHEUS_ADDRESS": "http://127.0.0.1:9"}
    extender, port = start_extender(plane, objects, 1, kubeconfig, tmp_path, **nowhere)
    try:
        _until(lambda: "needs the rule" in extender.log_text(), "without its role it says what it needs", extender)
        assert ANSWERS not in extender.log_text()
        assert (status_of(port, "/version"), status_of(port, "/readyz")) == (200, 500)
        extender.stop()
        grant(plane, objects, of_kube_scheduler=False)
        extender, port = start_extender(plane, objects, 1, kubeconfig, tmp_path / "..", **nowhere)
        _until(lambda: ANSWERS in extender.log_text(), "with it, it answers", extender)
        if agent == "load":  # it is ready when Prometheus has answered
            assert status_of(port, "/readyz") == 500
        else:
            _until(lambda: status_of(port, "/readyz") == 200, "it is ready", extender)
        if agent == "reward":
            plane.client.create(make_pod("bad", labels={"app": "D"}, nodeName="n1"))
            plane.client.patch("Pod", "bad", {"status": {"phase": "Failed"}}, subresource="status")
            found = plane.client.poll("ConfigMap", lambda items: bool(_rewards(items)), "kube-system")
            assert _rewards(found)["D"].startswith("n1 0.900000 1 ")
            assert points_of(port, "/reward/prioritize", {"app": "D"}) == {"n1": 9, "n2": 10}
            assert points_of(port, "/reward/prioritize", {"app": "E"}) == {"n1": 10, "n2": 10}
        assert "forbidden" not in extender.log_text()
    finally:
        extender.stop()


def _rewards(items: Objects) -> dict[str, str]:
    kept = [each.get("data", {}) for each in items if each["metadata"]["name"] == "podium-rewards"]
    return kept[0] if kept else {}


def test_two_agents_and_their_kube_scheduler_run_by_the_manifest(plane: ControlPlane, tmp_path: Path) -> None:
    plane.wipe()
    full = {"mean-free-cpu": "0", "std-free-cpu": "0"}
    annotations: Mapping[str, Mapping[str, str]] = {"calm": {}, "congested": {"congestion-factor": "9"}, "full": full}
    for name, given in annotations.items():
        node = make_node(name)
        plane.client.create({**node, "metadata": {**node["metadata"], "annotations": dict(given)}})
    objects = objects_of("safe,congestion")
    grant(plane, objects, of_kube_scheduler=True)
    kubeconfig = kubeconfig_of(plane, objects, tmp_path)
    safe, safe_port = start_extender(plane, objects, 1, kubeconfig, tmp_path)
    congestion, congestion_port = start_extender(plane, objects, 2, kubeconfig, tmp_path)
    running = [safe, congestion]
    try:
        for port in (safe_port, congestion_port):
            _until(lambda port=port: status_of(port, "/readyz") == 200, "it is ready", *running)  # type: ignore[misc]
        text = next(each for each in objects if each["kind"] == "ConfigMap")["data"]["scheduler.yaml"]
        text = text.replace(":5401/", f":{safe_port}/").replace(":5402/", f":{congestion_port}/")
        scheduler = _start_kube_scheduler(plane, text, kubeconfig, tmp_path)
        running.append(scheduler)
        (pod,) = (each for each in objects if each["kind"] == "Pod")
        for number in range(4):
            plane.client.create({**pod, "metadata": {"name": f"p{number}", "namespace": "default"}})
        pods = plane.client.poll("Pod", lambda items: all("nodeName" in each["spec"] for each in items), timeout=60)
        # Spreading alone would use all three nodes.
        assert {each["spec"]["nodeName"] for each in pods} == {"calm"}
        lease = plane.client.get("coordination.k8s.io/v1/Lease", "podium-safe-congestion", "kube-system")
        assert lease["spec"]["holderIdentity"]
        for each in running:
            assert "forbidden" not in each.log_text(), each.log_tail()
    finally:
        for each in reversed(running):
            each.stop()


def test_a_kube_scheduler_with_the_agent_reward_learns_from_failures(plane: ControlPlane, tmp_path: Path) -> None:
    plane.wipe()
    plane.client.create_all([make_node("good"), make_node("bad")])
    objects = objects_of("reward")
    grant(plane, objects, of_kube_scheduler=True)
    kubeconfig = kubeconfig_of(plane, objects, tmp_path)
    extender, port = start_extender(plane, objects, 1, kubeconfig, tmp_path)
    running = [extender]
    try:
        _until(lambda: status_of(port, "/readyz") == 200, "it is ready", extender)
        for number in range(3):
            plane.client.create(make_pod(f"bad-{number}", labels={"podtype": "D"}, nodeName="bad"))
            plane.client.patch("Pod", f"bad-{number}", {"status": {"phase": "Failed"}}, subresource="status")
        names = ["good", "bad"]
        question = json.dumps({"Pod": make_pod("q", labels={"podtype": "D"}), "NodeNames": names}).encode()

        def learnt() -> bool:
            request = json_request(f"http://127.0.0.1:{port}/reward/prioritize", question)
            with urllib.request.urlopen(request, timeout=5) as answer:
                return {each["Host"]: each["Score"] for each in json.load(answer)} == {"good": 10, "bad": 7}

        _until(learnt, "three failures are learnt from", extender)
        text = next(each for each in objects if each["kind"] == "ConfigMap")["data"]["scheduler.yaml"]
        running.append(_start_kube_scheduler(plane, text.replace(":5401/", f":{port}/"), kubeconfig, tmp_path))
        for kind in "DE":
            for number in range(4):
                labels = {"podtype": kind}
                plane.client.create(make_pod(f"{kind.lower()}-{number}", labels=labels, schedulerName="podium-reward"))
        pods = plane.client.poll("Pod", lambda items: all("nodeName" in each["spec"] for each in items), timeout=60)
        places = {kind: {each["spec"]["nodeName"] for each in pods if _is_new(each, kind)} for kind in "DE"}
        assert places["D"] == {"good"}
        assert "bad" in places["E"]
    finally:
        for each in reversed(running):
            each.stop()


def _is_new(pod: dict[str, Any], kind: str) -> bool:
    found: bool = pod["metadata"]["name"].startswith(f"{kind.lower()}-")
    return found


def _start_kube_scheduler(plane: ControlPlane, config: str, kubeconfig: Path, folder: Path) -> Component:
    """As the service account; nothing of the configuration is changed but how the API server is reached."""
    from tools.testbed.build import CONTROL_PLANE, programs

    settings = {**yaml.safe_load(config), "clientConnection": {"kubeconfig": str(kubeconfig)}}
    file = folder / "scheduler.yaml"
    file.write_text(yaml.safe_dump(settings))
    flags = [f"--authentication-kubeconfig={kubeconfig}", f"--authorization-kubeconfig={kubeconfig}"]
    command: list[str | Path] = [programs(*CONTROL_PLANE)["kube-scheduler"], f"--config={file}", *flags]
    return Component("kube-scheduler", [*command, f"--secure-port={free_port()}"], folder / "kube-scheduler.log")


def test_a_new_agent_is_served_as_it_is_written(plane: ControlPlane, tmp_path: Path) -> None:
    plane.wipe()
    plane.client.create_all([make_node("n1"), make_node("n2")])
    assert podium("plugins", "new", "SteadyNodes", "--agent", "--dir", str(tmp_path)).code == 0
    package = tmp_path / "steady-nodes"
    port = free_port()
    command: list[str | Path] = [sys.executable, "-m", "podium", "extender", "--agents", "SteadyNodes"]
    command += ["--plugin", "steady_nodes:SteadyNodes", "--port", str(port), "--kubeconfig", plane.kubeconfig_path]
    path = f"{podium_environment()['PYTHONPATH']}:{package / 'src'}"
    environment = {**podium_environment(), "PYTHONPATH": path, "STEADY_NODES_POINTS": "4"}
    extender = Component("steady", command, tmp_path / "log", environment=environment)
    try:
        _until(lambda: status_of(port, "/readyz") == 200, "it is ready", extender)
        assert points_of(port, "/SteadyNodes/prioritize", {}) == {"n1": 4, "n2": 4}
        text = (package / "kube-scheduler.yaml").read_text().replace(":5401/", f":{port}/")
        scheduler = plane.start_scheduler(yaml.safe_load(text))
        pod = make_pod("asked", schedulerName="steady-nodes")
        plane.client.create(pod)
        plane.client.poll("Pod", lambda items: all("nodeName" in each["spec"] for each in items))
        scheduler.stop()
    finally:
        extender.stop()


@pytest.mark.parametrize("agents", SETS)
def test_kube_scheduler_accepts_the_configuration(agents: str, plane: ControlPlane, tmp_path: Path) -> None:
    """It writes back what it has understood, and ends."""
    from tools.testbed.build import CONTROL_PLANE, programs

    text = next(each for each in objects_of(agents) if each["kind"] == "ConfigMap")["data"]["scheduler.yaml"]
    settings = {**yaml.safe_load(text), "clientConnection": {"kubeconfig": str(plane.kubeconfig_path)}}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(settings))
    program, out = programs(*CONTROL_PLANE)["kube-scheduler"], tmp_path / "out.yaml"
    command = [str(program), f"--config={tmp_path / 'config.yaml'}", f"--write-config-to={out}"]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert result.returncode == 0, result.stderr
    assert len(yaml.safe_load(out.read_text())["extenders"]) == len(settings["extenders"])
