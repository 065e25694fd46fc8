"""Questions about a live cluster: they only read, and what its namespaces allow counts."""

import json
from pathlib import Path

import pytest

from tests.podium.cli.command import podium
from tests.podium.cli.texts import documents, pod, write
from tools.testbed import ControlPlane
from tools.testbed.audit import accesses
from tools.testbed.objects import make_node, make_pod

PRICES = "types:\n  - {name: big, price: 2.5, allocatable: {cpu: 64, memory: 256Gi, pods: 58}}\n"


@pytest.mark.usefixtures("testbed_programs")
def test_the_audit_log_of_a_cluster_shows_reads_alone(tmp_path: Path) -> None:
    pods, prices = write(tmp_path, "pods.yaml", documents(pod("given"))), write(tmp_path, "prices.yaml", PRICES)
    config = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    old, new = (write(tmp_path, f"{name}.yaml", config) for name in ("old", "new"))
    with ControlPlane(audit_everything=True) as plane:
        plane.client.create_all([make_node("n1", cpu="2"), make_node("n2"), make_pod("huge", cpu="32")])
        plane.client.create(make_pod("bound", cpu="1"))
        plane.client.bind("bound", "n1")
        plane.kubectl("create", "clusterrolebinding", "jane", "--clusterrole=cluster-admin", "--user=jane")
        kubeconfig = tmp_path / "jane"
        plane.write_kubeconfig(kubeconfig, certificate=plane.authority.issue("jane"))
        questions = [
            ("explain", "huge"),
            ("explain", "--all"),
            ("whatif", "-f", pods, "--preempt"),
            ("whatif", "--cordon", "n1", "--drain", "n2", "--force"),
            ("whatif", "--each"),
            ("whatif", "--unblock", "--catalog", prices),
            ("whatif", "--config", new, "--against", old, "--running"),
            ("capacity", "-f", pods, "--add-nodes", "1=like:n1"),
        ]
        for words in questions:
            ran = podium(*words, "--kubeconfig", str(kubeconfig))
            assert ran.code in (0, 1), (words, ran.err)
        call = {"name": "capacity", "arguments": {"kubeconfig": str(kubeconfig), "files": [pods]}}
        asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
        assert "structuredContent" in json.loads(podium("mcp", stdin=json.dumps(asked) + "\n").out)["result"]
        found = accesses(plane.audit_log, "jane")
    assert {each.verb for each in found} <= {"get", "list"}
    assert {"pods", "nodes", "resourcequotas", "limitranges"} <= {each.resource for each in found}


def test_a_quota_of_a_live_namespace_is_named(empty_control_plane: ControlPlane, tmp_path: Path) -> None:
    plane = empty_control_plane
    plane.client.create(make_node("n1"))
    plane.kubectl("create", "quota", "small", "--hard=requests.cpu=1")
    given = write(tmp_path, "pod.yaml", json.dumps(make_pod("large", cpu="2")))
    ran = podium("whatif", "-f", given, "--kubeconfig", str(plane.kubeconfig_path), "-o", "json")
    (judged,) = json.loads(ran.out)["answer"]["pods"]
    assert (ran.code, judged["verdict"]) == (1, "quota")
    version = int(json.loads(ran.out)["state"]["resourceVersion"])
    assert version >= int(plane.client.get("Node", "n1")["metadata"]["resourceVersion"])
    assert judged["after"]["message"].startswith("exceeded quota: small, requested: requests.cpu=2,")
