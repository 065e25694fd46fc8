"""What `podium run` says and serves as a process: endpoints, exit codes, and what is wrong with its input."""

import socket
from pathlib import Path

from tests.podium.cli.command import podium
from tools.testbed import ControlPlane
from tools.testbed.connections import ConnectionPool
from tools.testbed.objects import make_node, make_pod


def test_health_metrics_and_configuration_are_served(empty_control_plane: ControlPlane) -> None:
    plane = empty_control_plane
    plane.client.create_all([make_node("n1"), make_pod("p1", cpu="1")])
    scheduler = plane.start_podium({"podMaxBackoffSeconds": 17})
    plane.client.poll("Pod", lambda items: all("nodeName" in each["spec"] for each in items))
    anybody = ConnectionPool(scheduler.url, ca_path=None, timeout=5.0)
    admin = ConnectionPool(scheduler.url, ca_path=None, headers={"Authorization": f"Bearer {plane.token}"}, timeout=5.0)
    try:
        for path in ("/healthz", "/livez", "/readyz"):
            assert anybody.request("GET", path).body == b"ok"
        assert anybody.request("GET", "/metrics").status == 403
        assert b'"podMaxBackoffSeconds":17' in admin.request("GET", "/configz").body
        metrics = admin.request("GET", "/metrics").body.decode()
        assert 'scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"} 1.0' in metrics
        assert b'pod="p1",node="n1"' in admin.request("GET", "/metrics/resources").body
    finally:
        anybody.close()
        admin.close()


def test_it_ends_with_0_when_told_to_stop_and_hands_its_lease_over(empty_control_plane: ControlPlane) -> None:
    plane = empty_control_plane
    election = {"leaderElect": True, "resourceName": "podium", "resourceNamespace": "default"}
    scheduler = plane.start_podium({"leaderElection": election})
    plane.client.poll("coordination.k8s.io/v1/Lease", lambda items: any(_held(each) for each in items), "default")
    scheduler.stop(grace=20.0)
    assert scheduler.exit_code == 0
    [lease] = plane.client.list("coordination.k8s.io/v1/Lease", "default")
    assert not _held(lease)
    plane.client.delete("coordination.k8s.io/v1/Lease", "podium", "default")


def _held(lease: dict[str, dict[str, str]]) -> bool:
    return bool(lease["spec"].get("holderIdentity"))


def test_a_port_that_is_taken_is_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ran = podium(
            *("run", "--kubeconfig", str(_kubeconfig(tmp_path)), "--leader-elect", "false"),
            *("--bind-address", "127.0.0.1", "--secure-port", str(port)),
        )
    assert ran.code == 2
    assert str(port) in ran.err.splitlines()[-1]


def test_flags_that_cannot_be_meant_are_told(tmp_path: Path) -> None:
    kubeconfig = str(_kubeconfig(tmp_path))
    for flags, sentence in (
        (["--leader-elect=maybe"], '--leader-elect "maybe": write true or false'),
        (["--leader-elect-lease-duration", "soon"], '--leader-elect-lease-duration "soon"'),
        (["--leader-elect-lease-duration", "5s"], "must be greater than `RenewDeadline`"),
        (["--log-level", "loud"], '--log-level "loud": write one of trace, debug, info, warning, error'),
        (["--tls-cert-file", "x.crt"], "--tls-cert-file is given without --tls-private-key-file"),
        (["--kubeconfig", str(tmp_path / "gone")], "gone"),
    ):
        ran = podium("run", "--kubeconfig", kubeconfig, *flags)
        assert (ran.code, ran.out) == (2, "")
        assert sentence in ran.err.splitlines()[-1]


def _kubeconfig(folder: Path) -> Path:
    """One that can be read, of a server that is not there."""
    path = folder / "config"
    path.write_text(
        "current-context: c\ncontexts: [{name: c, context: {cluster: c}}]\n"
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:9'}}]\n"
    )
    return path
