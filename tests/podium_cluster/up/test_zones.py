"""NUMA zones on the embedded cluster: the manifests of the examples, applied unchanged with the real kubectl."""

import time
from collections.abc import Callable
from pathlib import Path

from tests.podium.cli.command import podium
from tests.podium_cluster.apiserver.kubectl import Kubectl, printed
from tests.podium_cluster.up.up_process import PodiumUp

EXAMPLES = Path(__file__).parents[3] / "examples"
CONFIG = EXAMPLES / "config" / "node-resource-topology-match.yaml"
MANIFESTS = EXAMPLES / "manifests" / "node-resource-topologies.yaml"
REFUSAL = "numa-1: container main fits no zone: node-0 has 3 of 4 cpu; node-1 has 2 of 4 cpu"


def until(holds: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.2)


def test_the_example_manifests_with_kubectl(testbed_programs: None, tmp_path: Path) -> None:
    definition = tmp_path / "crd.yaml"
    definition.write_text(podium("crds", "noderesourcetopologies").out)
    options = ("--port", "0", "--nodes", "0", "--speed", "50", "--workload", str(definition), "--config", str(CONFIG))
    with PodiumUp(*options, home=tmp_path) as up:
        kubectl = Kubectl(up.kubeconfig, tmp_path)

        def typed(command: str, *more: str) -> str:
            return printed(kubectl(*command.split(), *more))

        def node_of(pod: str) -> str:
            return typed(f"get pod {pod} -o jsonpath={{.spec.nodeName}}")

        typed(f"apply -f {MANIFESTS}")
        assert "numa-1" in typed("get node-res-topo")
        until(lambda: node_of("aligned") == "numa-1", "each container has a zone")
        until(lambda: node_of("shared") == "numa-1", "a pod that is not Guaranteed needs none")
        until(lambda: "cannot align container" in typed("describe pod wide"), "the wide pod fits no zone")
        kubectl("delete", "pod", "shared", "aligned", "--force", "--grace-period=0")  # no kubelet runs this node
        explained = podium("explain", "wide", "--kubeconfig", str(up.kubeconfig), "--config", str(CONFIG))
        assert explained.code == 1
        assert REFUSAL in explained.out
        attribute = '[{"op": "replace", "path": "/attributes/0/value", "value": "best-effort"}]'
        typed("patch node-res-topo numa-1 --type=json -p", attribute)
        until(lambda: node_of("wide") == "numa-1", "a kubelet that does not insist takes it")
        assert "Traceback" not in up.output
