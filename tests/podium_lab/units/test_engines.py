"""Every engine gives the same bytes, also when workers are killed, and when it is stopped and goes on elsewhere."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from podium_lab.units.jobs import RIGHTS
from podium_lab.units.store import open_store
from tests.podium_lab.units.sweeps import LONG, command, finished, results, run_until, stored
from tools.testbed import ControlPlane, TestbedUnavailable
from tools.testbed.availability import skip_or_fail
from tools.testbed.object_store import ObjectStore
from tools.testbed.process_kubelet import ProcessKubelet
from tools.testbed.ray_nodes import RayNodes, ray_environment, site_packages

ROOT = Path(__file__).parents[3]
QUOTA = {"metadata": {"name": "no-more-jobs"}, "spec": {"hard": {"count/jobs.batch": "1"}}}


class Alone(NamedTuple):
    """The scenario, and what one process makes of it."""

    scenario: Path
    results: dict[str, bytes]
    stored: dict[str, bytes]


class Engine(NamedTuple):
    """How to run a sweep on an engine, and how to kill one of its workers."""

    options: list[str]
    kill: Callable[[int], bool]
    """Kill a worker of a command by its process id; whether there was one."""
    python: Sequence[str] = (sys.executable,)
    variables: Mapping[str, str] = {}


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Alone:
    folder = tmp_path_factory.mktemp("alone")
    scenario = folder / "long.yaml"
    scenario.write_text(LONG)
    finished(command(scenario, "--store", str(folder / "store"), "--out", str(folder / "out")))
    return Alone(scenario, results(folder / "out"), stored(folder / "store"))


@pytest.fixture(scope="module")
def ray_nodes(testbed_programs: None) -> Iterator[RayNodes]:
    try:
        with RayNodes() as nodes:
            yield nodes
    except TestbedUnavailable as unavailable:
        skip_or_fail(unavailable)


@pytest.fixture
def ray_engine(ray_nodes: RayNodes) -> Engine:
    def kill(_pid: int) -> bool:
        tasks = [*ray_nodes.tasks(1), *ray_nodes.tasks(0)]
        return _kill(tasks[:1])

    return Engine(["--engine", "ray"], kill, ray_nodes.command, ray_nodes.variables)


@pytest.fixture
def kubelet(empty_control_plane: ControlPlane, tmp_path: Path) -> Iterator[ProcessKubelet]:
    """A node whose pods run, with the controllers of Jobs, a scheduler, and a claim on the folder `store`."""
    plane = empty_control_plane
    controllers = ("job-controller", "garbage-collector-controller", "ttl-after-finished-controller")
    plane.start_controller_manager(controllers)
    plane.start_scheduler()
    spec = {"accessModes": ["ReadWriteMany"], "storageClassName": "none"}
    size = {"storage": "1Gi"}
    volume = {**spec, "capacity": size, "hostPath": {"path": "/"}, "claimRef": {"namespace": "default", "name": "runs"}}
    bound = {"name": "runs", "annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
    claim = {**spec, "volumeName": "runs", "resources": {"requests": size}}
    for kind, metadata, what in (
        ("PersistentVolume", {"name": "runs"}, volume),
        ("PersistentVolumeClaim", bound, claim),
    ):
        status = {"phase": "Bound"}
        plane.client.create({"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": what, "status": status})
    with ProcessKubelet(plane.client, "machine", claims={"runs": tmp_path}) as running:
        yield running


@pytest.fixture
def job_engine(empty_control_plane: ControlPlane, kubelet: ProcessKubelet) -> Engine:
    def kill(_pid: int) -> bool:
        running = [name for name, process in kubelet.processes.items() if process.poll() is None]
        for name in running[:1]:
            kubelet.kill(name)
        return bool(running)

    options = ["--engine", "kubernetes", "--workers", "2", "--image", "podium", "--claim", "runs:store"]
    return Engine([*options, "--kubeconfig", str(empty_control_plane.kubeconfig_path)], kill)


def local_engine() -> Engine:
    return Engine(["--workers", "2"], lambda pid: _kill(_workers(pid)[:1]))


def check(engine: Engine, alone: Alone, folder: Path, following: Engine) -> None:
    """A sweep with a worker killed in the middle, stopped as a whole, goes on with another engine."""
    store = folder / "store"

    def given(which: Engine, out: str) -> list[str]:
        arguments = ("--store", str(store), "--out", str(folder / out), *which.options)
        return command(alone.scenario, *arguments, python=which.python)

    def done() -> int:
        return len(open_store(str(store)).present())

    killed = False
    with subprocess.Popen(
        given(engine, "first"), env=_environment(engine), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        deadline = time.monotonic() + 120
        while process.poll() is None and done() < 5:
            assert time.monotonic() < deadline
            if not killed and done() >= 2:
                killed = engine.kill(process.pid)
            time.sleep(0.02)
        process.kill()
        errors = process.communicate()[1].decode()
    assert killed, errors
    kept = done()
    assert kept >= 5, errors
    last = finished(given(following, "second"), following.variables)
    assert last["damaged"] == 0
    assert last["skipped"] >= kept, "what was stored is not made again"
    assert results(folder / "second") == alone.results
    assert stored(store) == alone.stored


@pytest.mark.long
def test_a_sweep_on_two_processes_goes_on_by_itself(alone: Alone, tmp_path: Path) -> None:
    check(local_engine(), alone, tmp_path, local_engine())


def test_a_sweep_on_two_processes_goes_on_on_ray(alone: Alone, ray_engine: Engine, tmp_path: Path) -> None:
    check(local_engine(), alone, tmp_path, ray_engine)


def test_a_sweep_on_ray_goes_on_as_jobs(alone: Alone, ray_engine: Engine, job_engine: Engine, tmp_path: Path) -> None:
    check(ray_engine, alone, tmp_path, job_engine)


def test_a_sweep_as_jobs_goes_on_on_two_processes(alone: Alone, job_engine: Engine, tmp_path: Path) -> None:
    check(job_engine, alone, tmp_path, local_engine())


def test_a_job_needs_no_more_rights_than_its_role_gives(
    alone: Alone, job_engine: Engine, kubelet: ProcessKubelet, empty_control_plane: ControlPlane, tmp_path: Path
) -> None:
    plane = empty_control_plane
    role, _claim, _secret = yaml.safe_load_all((ROOT / "deploy" / "units" / "access.yaml").read_text())
    role["metadata"]["namespace"] = "default"
    plane.client.create(role)
    group = "rbac.authorization.k8s.io"
    binding = {"roleRef": {"apiGroup": group, "kind": "Role", "name": role["metadata"]["name"]}}
    subjects = [{"apiGroup": group, "kind": "User", "name": "researcher"}]
    head = {"apiVersion": f"{group}/v1", "kind": "RoleBinding", "metadata": {"name": "units", "namespace": "default"}}
    plane.client.create({**head, **binding, "subjects": subjects})
    access = plane.write_kubeconfig(tmp_path / "kubeconfig", certificate=plane.authority.issue("researcher"))
    given = ("--store", str(tmp_path / "store"), "--out", str(tmp_path / "out"), *job_engine.options)
    store = open_store(str(tmp_path / "store"))
    run_until([*command(alone.scenario, *given, "--kubeconfig", str(access))], lambda: len(store.present()) >= 2)
    (job,) = plane.client.list("jobs")
    pod = job["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    plane.client.create({"apiVersion": "v1", "kind": "ResourceQuota", **QUOTA})  # a second Job could not be made
    last = finished(command(alone.scenario, *given, "--kubeconfig", str(access)))
    assert last["skipped"] >= 2, "the Job of the command that was killed has gone on"
    assert results(tmp_path / "out") == alone.results
    assert {role_rule(rule) for rule in role["rules"]} == {(group, kind, verbs) for group, kind, verbs in RIGHTS}


def role_rule(rule: dict[str, list[str]]) -> tuple[str, str, tuple[str, ...]]:
    return rule["apiGroups"][0], rule["resources"][0], tuple(rule["verbs"])


def test_a_pod_that_loses_its_node_is_replaced_and_is_no_failure(
    alone: Alone, job_engine: Engine, kubelet: ProcessKubelet, empty_control_plane: ControlPlane, tmp_path: Path
) -> None:
    given = ("--store", str(tmp_path / "store"), "--out", str(tmp_path / "out"), *job_engine.options)
    store = open_store(str(tmp_path / "store"))
    run_until(command(alone.scenario, *given), lambda: len(store.present()) >= 2)
    for pod in [name for name, process in kubelet.processes.items() if process.poll() is None]:
        kubelet.evict(pod)
    assert finished(command(alone.scenario, *given))["done"] >= 5
    assert len(kubelet.started) >= 3
    assert results(tmp_path / "out") == alone.results


def test_wrong_input_ends_a_job_with_its_sentence(
    job_engine: Engine, alone: Alone, empty_control_plane: ControlPlane, kubelet: ProcessKubelet, tmp_path: Path
) -> None:
    """A pod whose code is not the command's refuses the units, and the command says so."""
    (tmp_path / "other").mkdir()
    wrapper = tmp_path / "other" / "sitecustomize.py"
    wrapper.write_text("import podium_lab.units.unit as unit\nunit.code_hash = lambda: 'other'\n")
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "path"},
        "stringData": {"PYTHONPATH": str(wrapper.parent)},
    }
    empty_control_plane.client.create(secret)
    arguments = (
        "--store",
        str(tmp_path / "store"),
        "--out",
        str(tmp_path / "out"),
        "--secret",
        "path",
        *job_engine.options,
    )
    ran = subprocess.run(command(alone.scenario, *arguments), capture_output=True, text=True, timeout=100, check=False)
    assert ran.returncode == 2
    assert "has failed: simulate" in ran.stderr
    assert "install the same Podium everywhere" in ran.stderr


def test_a_store_of_objects_is_shared_by_processes_and_pods(
    alone: Alone, job_engine: Engine, empty_control_plane: ControlPlane, tmp_path: Path
) -> None:
    packages = str(site_packages(ray_environment()))
    with ObjectStore() as objects:
        variables = {**objects.variables, "PYTHONPATH": packages}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "credentials"}, "stringData": variables}
        empty_control_plane.client.create(secret)
        given = ("--store", objects.url("runs/mine"), "--out", str(tmp_path / "out"))
        whole = command(alone.scenario, *given)
        run_until(
            command(alone.scenario, *given, "--workers", "2"),
            lambda: sum("/results/" in name for name in objects.objects) >= 3,
            environment=variables,
        )
        last = finished([*whole, *job_engine.options, "--secret", "credentials"], variables)
        assert last["skipped"] >= 3
        assert not objects.unsigned
        made = {name.removeprefix("runs/mine/"): content for name, content in objects.objects.items()}
        assert {name: content for name, content in made.items() if name.startswith("results/")} == alone.stored
        assert results(tmp_path / "out") == alone.results
        name = next(name for name in objects.objects if "/results/" in name)
        objects.objects[name] = objects.objects[name][:-3]
        again = finished(whole, variables)
        assert (again["damaged"], again["done"]) == (1, 1)


def _environment(engine: Engine) -> dict[str, str]:
    return {**os.environ, **engine.variables}


def test_losing_a_node_of_ray_loses_no_more_than_what_it_ran(
    alone: Alone, ray_nodes: RayNodes, ray_engine: Engine, tmp_path: Path
) -> None:
    store = open_store(str(tmp_path / "store"))
    given = ("--store", store.url, "--out", str(tmp_path / "out"), *ray_engine.options)
    arguments = command(alone.scenario, *given, python=ray_engine.python)
    with subprocess.Popen(arguments, env=_environment(ray_engine), stdout=subprocess.DEVNULL) as process:
        while process.poll() is None and len(store.present()) < 2:
            time.sleep(0.05)
        ray_nodes.lose()
        assert process.wait(120) == 0
    assert results(tmp_path / "out") == alone.results


def _kill(pids: Sequence[int]) -> bool:
    for pid in pids:
        subprocess.run(["kill", "-9", str(pid)], check=False)
    return bool(pids)


def _workers(pid: int) -> list[int]:
    """The processes that a command's units run in: children of the process that they are forked from."""
    parents = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(status.parent.name)] = int(fields[1])
    children = [each for each, parent in parents.items() if parent == pid]
    return [each for each, parent in parents.items() if parent in children]
