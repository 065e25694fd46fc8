"""The control plane: what it answers, what it leaves as written, and that nothing of it outlives its test."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tools.testbed import ApiError, ComponentFailed, ControlPlane
from tools.testbed.build import KUBERNETES_VERSION
from tools.testbed.connections import ConnectionPool
from tools.testbed.folders import OwnedFolder
from tools.testbed.objects import make_namespace, make_node, make_pod


def test_an_empty_api_server_is_ready(
    control_plane: ControlPlane, record_property: Callable[[str, object], None], capsys: pytest.CaptureFixture[str]
) -> None:
    assert control_plane.client.request("GET", "/readyz") == b"ok"
    record_property("start_seconds", control_plane.start_seconds)
    with capsys.disabled():
        print(f"test bed: etcd and kube-apiserver were ready in {control_plane.start_seconds:.1f} s", file=sys.stderr)


def test_kubectl_and_the_server_are_of_the_pinned_version(control_plane: ControlPlane) -> None:
    lines = control_plane.kubectl("version").splitlines()
    assert f"Client Version: {KUBERNETES_VERSION}" in lines
    assert f"Server Version: {KUBERNETES_VERSION}" in lines


def test_kubectl_errors_are_raised(control_plane: ControlPlane) -> None:
    with pytest.raises(subprocess.CalledProcessError) as caught:
        control_plane.kubectl("get", "node", "absent")
    assert "not found" in caught.value.stderr


def test_namespaces_can_be_created(empty_control_plane: ControlPlane) -> None:
    empty_control_plane.client.create(make_namespace("here"))
    assert "namespace/here" in empty_control_plane.kubectl("get", "namespaces", "-o", "name").splitlines()


def test_nodes_and_pods_stay_as_written(empty_control_plane: ControlPlane) -> None:
    node = empty_control_plane.client.create(make_node())
    pod = empty_control_plane.client.create(make_pod(priority=1234))
    assert node["spec"] == {}
    assert node["status"]["allocatable"] == make_node()["status"]["allocatable"]
    assert pod["spec"]["priority"] == 1234
    assert not {"tolerations", "volumes", "serviceAccountName"} & pod["spec"].keys()


def test_the_real_scheduler_places_a_pod_and_logs_what_it_did(
    empty_control_plane: ControlPlane, tmp_path: Path
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{schedulerName: chosen}]\n"
    )
    client = empty_control_plane.client
    client.create_all([make_node("one"), make_node("two")])
    scheduler = empty_control_plane.start_scheduler(config, verbosity=10)
    client.create_all([make_pod("mine", schedulerName="chosen"), make_pod("other")])
    client.poll("Pod", lambda pods: any("nodeName" in pod["spec"] for pod in pods))
    assert client.get("Pod", "mine")["spec"]["nodeName"] in ("one", "two")
    assert "nodeName" not in client.get("Pod", "other")["spec"]
    scheduler.stop()
    assert not scheduler.running
    log = scheduler.log_path.read_text()
    for node in ("one", "two"):  # at this verbosity every plugin's score is logged
        assert f'"Plugin scored node for pod" pod="default/mine" plugin="NodeResourcesFit" node="{node}"' in log


def test_two_schedulers_run_at_once_with_their_own_logs(empty_control_plane: ControlPlane) -> None:
    first = empty_control_plane.start_scheduler({"profiles": [{"schedulerName": "first"}]})
    second = empty_control_plane.start_scheduler({"profiles": [{"schedulerName": "second"}]})
    client = empty_control_plane.client
    client.create(make_node())
    client.create_all([make_pod("a", schedulerName="first"), make_pod("b", schedulerName="second")])
    client.poll("Pod", lambda pods: all("nodeName" in pod["spec"] for pod in pods))
    assert first.log_path != second.log_path
    assert first.running
    assert second.running


def test_a_scheduler_shows_its_metrics_to_the_administrator(empty_control_plane: ControlPlane) -> None:
    scheduler = empty_control_plane.start_scheduler()
    headers = {"Authorization": f"Bearer {empty_control_plane.token}"}
    pool = ConnectionPool(scheduler.url, ca_path=empty_control_plane.ca_path, headers=headers)
    assert b"scheduler_pending_pods" in pool.request("GET", "/metrics").body
    pool.close()


def test_a_scheduler_that_refuses_its_configuration_says_so(control_plane: ControlPlane) -> None:
    with pytest.raises(ComponentFailed, match="percentageOfNodesToScore"):
        control_plane.start_scheduler({"percentageOfNodesToScore": 101})


def test_chosen_controllers_do_their_work(empty_control_plane: ControlPlane) -> None:
    empty_control_plane.start_controller_manager(("replicaset-controller",))
    template = {"metadata": {"labels": {"app": "web"}}, "spec": make_pod()["spec"]}
    spec = {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    metadata = {"name": "web", "namespace": "default"}
    client = empty_control_plane.client
    client.create({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": spec})
    client.poll("Pod", lambda pods: len(pods) == 3)


def test_a_client_certificate_is_a_user_without_rights_of_its_own(control_plane: ControlPlane, tmp_path: Path) -> None:
    certificate = control_plane.authority.issue("alice", organizations=("visitors",))
    path = control_plane.write_kubeconfig(tmp_path / "kubeconfig", certificate=certificate)
    assert "alice" in control_plane.kubectl(f"--kubeconfig={path}", "auth", "whoami")
    with pytest.raises(subprocess.CalledProcessError) as caught:
        control_plane.kubectl(f"--kubeconfig={path}", "get", "nodes")
    assert 'User "alice" cannot list resource "nodes"' in caught.value.stderr


@pytest.mark.usefixtures("testbed_programs")
def test_admission_feature_gates_and_versions_can_be_chosen() -> None:
    with ControlPlane(
        priority_admission=True,
        feature_gates={"GenericWorkload": True},
        runtime_config={"scheduling.k8s.io/v1beta1": True},
    ) as plane:
        with pytest.raises(ApiError, match="the integer value of priority"):
            plane.client.create(make_pod(priority=1234))
        assert plane.client.resource("Workload").api_version == "scheduling.k8s.io/v1beta1"
        plane.start_scheduler().stop()


def test_nothing_is_left_behind_after_stop(fresh_control_plane: ControlPlane) -> None:
    fresh_control_plane.start_scheduler()
    fresh_control_plane.start_controller_manager(("namespace-controller",))
    pids, folder = fresh_control_plane.pids, fresh_control_plane.folder
    assert len(pids) == 4
    assert all(_alive(pid) for pid in pids)
    fresh_control_plane.stop()
    assert [pid for pid in pids if _alive(pid)] == []
    assert not folder.exists()
    fresh_control_plane.stop()  # again, harmlessly


@pytest.mark.usefixtures("testbed_programs")
@pytest.mark.parametrize("end", ["sys.exit()", "raise KeyError", "os.kill(os.getpid(), 9)"])
def test_nothing_is_left_behind_when_the_test_process_ends(end: str) -> None:
    script = (
        "import os, sys\n"
        "from tools.testbed import ControlPlane\n"
        "plane = ControlPlane()\n"
        "plane.start()\n"
        "plane.start_scheduler()\n"
        "print(plane.folder, *plane.pids, flush=True)\n"
    )
    result = subprocess.run([sys.executable, "-c", script + end], capture_output=True, text=True, check=False)
    folder, *pids = result.stdout.split()
    assert len(pids) == 3, result.stderr
    deadline = time.monotonic() + 10
    while any(_alive(int(pid)) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [pid for pid in pids if _alive(int(pid))] == []
    if "kill" in end:  # no process was left to remove it: the next owner of a folder does, once it is not new
        os.utime(folder, (0, 0))
        OwnedFolder().remove()
    assert not Path(folder).exists()


def test_a_component_outlives_the_thread_that_started_it(empty_control_plane: ControlPlane) -> None:
    with ThreadPoolExecutor(1) as thread:
        scheduler = thread.submit(empty_control_plane.start_scheduler).result()
    time.sleep(0.3)  # the kernel would have killed it by now
    assert scheduler.running


def test_a_folder_in_use_is_not_taken_for_abandoned() -> None:
    used = OwnedFolder()
    os.utime(used.path, (0, 0))
    OwnedFolder().remove()
    assert used.path.is_dir()
    used.remove()
    assert not used.path.exists()


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state not in "ZX"  # an ended process whose parent has not asked is still listed
