"""`podium up` that is stopped for longer than its lease lasts goes on when it is continued."""

from pathlib import Path

from tests.podium_cluster.up.pauses import call, endure, placed
from tests.podium_cluster.up.up_process import PodiumUp

SHORT_LEASE = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: true, leaseDuration: 3s, renewDeadline: 2s, retryPeriod: 500ms}
"""


def test_a_cluster_that_was_stopped_for_longer_than_its_lease_loses_nothing(tmp_path: Path) -> None:
    config = tmp_path / "scheduler.yaml"
    config.write_text(SHORT_LEASE)
    arguments = ("--port", "0", "--nodes", "6", "--workload", "none", "--speed", "50", "--config", str(config))
    with PodiumUp(*arguments, home=tmp_path) as up:
        seen = endure(up, 2, 4.0, 6)
        assert up.stop() == 0
    assert seen["pods"] > 20
    assert "not renewed" not in up.output
    assert "has been blocked" not in up.output, "a pause of all is not a blocked loop"


def test_a_lease_that_another_scheduler_has_taken_is_waited_for(tmp_path: Path) -> None:
    config = tmp_path / "scheduler.yaml"
    config.write_text(SHORT_LEASE)
    with PodiumUp("--port", "0", "--nodes", "2", "--workload", "none", "--config", str(config), home=tmp_path) as up:
        placed(up, "before")
        path = f"{up.url}/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"
        patch = {"spec": {"holderIdentity": "another", "leaseDurationSeconds": 2}}
        call(path, "PATCH", patch, content_type="application/merge-patch+json")
        up.wait_for("lease kube-system/kube-scheduler is held by another now; waiting until it can be taken again")
        placed(up, "after")
        assert call(path)["spec"]["holderIdentity"] != "another"
        assert up.stop() == 0
