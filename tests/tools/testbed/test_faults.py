"""What the test bed can do to its components: kill, restart and pause them, and tell afterwards who bound what."""

import subprocess
import time
from datetime import timedelta
from pathlib import Path

import pytest

from tools.testbed import ApiError, ControlPlane
from tools.testbed.audit import bindings, lease_changes
from tools.testbed.objects import make_node, make_pod


def test_a_restarted_api_server_has_the_same_address_and_data(fresh_control_plane: ControlPlane) -> None:
    client = fresh_control_plane.client
    client.create(make_node("before"))
    fresh_control_plane.kill_apiserver()
    with pytest.raises(ConnectionError):
        client.get("Node", "before")
    fresh_control_plane.restart_apiserver()
    assert client.get("Node", "before")["metadata"]["name"] == "before"


def test_tokens_change_with_the_next_start(fresh_control_plane: ControlPlane) -> None:
    fresh_control_plane.set_tokens({"first": "system:kube-scheduler"})
    fresh_control_plane.restart_apiserver()
    with fresh_control_plane.new_client(token="first") as user:
        assert user.list("Node") == []
        fresh_control_plane.set_tokens({"second": "system:kube-scheduler"})
        fresh_control_plane.restart_apiserver()
        with pytest.raises(ApiError, match="401"):
            user.list("Node")
    with fresh_control_plane.new_client(token="second") as user:
        assert user.list("Node") == []


@pytest.mark.usefixtures("testbed_programs")
def test_the_audit_log_tells_who_bound_what_and_who_holds_a_lease() -> None:
    with ControlPlane(audit=True) as plane:
        client = plane.client
        client.create_all([make_node("one"), make_pod("a")])
        began = time.time()
        client.bind("a", "one")
        with pytest.raises(ApiError, match="409"):
            client.bind("a", "one")
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": "lead", "namespace": "kube-system"},
            "spec": {"holderIdentity": "me"},
        }
        client.create(lease)
        made, refused = bindings(plane.audit_log)
        assert (made.pod, made.node, made.user, made.succeeded) == ("default/a", "one", "admin", True)
        assert (refused.pod, refused.status, refused.succeeded) == ("default/a", 409, False)
        assert began <= made.time <= refused.time <= time.time()
        assert [change.holder for change in lease_changes(plane.audit_log, "lead")] == ["me"]


def test_a_paused_scheduler_does_nothing_until_it_goes_on(empty_control_plane: ControlPlane) -> None:
    client = empty_control_plane.client
    scheduler = empty_control_plane.start_scheduler()
    client.create(make_node())
    scheduler.pause()
    client.create(make_pod())
    time.sleep(0.5)
    assert "nodeName" not in client.get("Pod", "pod")["spec"]
    scheduler.resume()
    client.poll("Pod", lambda pods: all("nodeName" in pod["spec"] for pod in pods))


def test_a_paused_component_can_be_stopped(empty_control_plane: ControlPlane) -> None:
    scheduler = empty_control_plane.start_scheduler()
    scheduler.pause()
    scheduler.stop(grace=60.0)
    assert scheduler.exit_code is not None
    assert scheduler.exit_code != -9  # it heard the request to end, no force was needed


def test_a_certificate_may_be_issued_that_has_expired(control_plane: ControlPlane, tmp_path: Path) -> None:
    expired = control_plane.authority.issue("old", organizations=("system:masters",), lifetime=timedelta(seconds=-1))
    path = control_plane.write_kubeconfig(tmp_path / "kubeconfig", certificate=expired)
    with pytest.raises(subprocess.CalledProcessError) as caught:
        control_plane.kubectl(f"--kubeconfig={path}", "get", "nodes")
    said = caught.value.stderr  # one or the other, as kubectl knows the kinds already or must ask for them first
    assert "Unauthorized" in said or "provide credentials" in said
