"""The custom resource definitions have the names, short names, columns and fields that scheduler-plugins users know."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from podium.controllers.catalog import definitions
from podium.manifests.objects import to_yaml
from tests.podium.run.crowd import until
from tests.podium_cluster.apiserver.kubectl import Kubectl, printed
from tests.podium_cluster.up.up_process import PodiumUp
from tools.testbed import ControlPlane

SAMPLES = Path(__file__).with_name("samples.yaml")


@pytest.mark.parametrize(
    ("plural", "group", "version", "scope", "short_names", "columns"),
    [
        ("podgroups", "scheduling.x-k8s.io", "v1alpha1", "Namespaced", ["pg", "pgs"],
         ["Phase", "MinMember", "Running", "Succeeded", "Failed", "Age"]),
        ("elasticquotas", "scheduling.x-k8s.io", "v1alpha1", "Namespaced", ["eq", "eqs"], ["Used", "Max", "Age"]),
        ("appgroups", "appgroup.diktyo.x-k8s.io", "v1alpha1", "Namespaced", ["ag"], []),
        ("networktopologies", "networktopology.diktyo.x-k8s.io", "v1alpha1", "Namespaced", ["nt"], []),
        ("noderesourcetopologies", "topology.node.k8s.io", "v1alpha2", "Cluster", ["node-res-topo"], []),
        ("seccompprofiles", "security-profiles-operator.x-k8s.io", "v1beta1", "Namespaced", ["sp"],
         ["Status", "Age", "LocalhostProfile"]),
    ],
)  # fmt: skip
def test_a_definition_is_called_as_users_know_it(
    plural: str, group: str, version: str, scope: str, short_names: list[str], columns: list[str]
) -> None:
    definition = definitions()[plural]
    spec = definition["spec"]
    [served] = spec["versions"]
    assert definition["metadata"]["name"] == f"{plural}.{group}"
    assert (spec["group"], served["name"], spec["scope"]) == (group, version, scope)
    assert spec["names"]["shortNames"] == short_names
    assert [each["name"] for each in served.get("additionalPrinterColumns", ())] == columns


SHORT_NAMES = ("pg", "eq", "ag", "nt", "sp", "node-res-topo")
REFUSED = {
    "PodGroup": ("minMember: 3", "minMember: 0", "should be greater than or equal to 1"),
    "ElasticQuota": ("cpu: 20", "cpu: lots", "should match"),
    "AppGroup": ("numMembers: 3", "numMembers: 0", "should be greater than or equal to 1"),
    "NetworkTopology": ("networkCost: 5", "networkCost: -5", "should be greater than or equal to 0"),
    "NodeResourceTopology": ("available: 3", "available: three", "should match"),
    "SeccompProfile": ("SCMP_ACT_LOG", "SCMP_ACT_DANCE", "Unsupported value"),
}


def check(kubectl: Kubectl) -> None:
    """What must hold of any API server with the definitions."""
    crds = kubectl("apply", "-f", "-", stdin=to_yaml(definitions().values()))
    printed(crds, errors=["is missing the kubectl.kubernetes.io/last-applied-configuration"])  # podium up has them
    printed(kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"))
    until(lambda: kubectl("get", ",".join(SHORT_NAMES)).code == 0, "all kinds are served under their short names")
    printed(kubectl("apply", "-f", str(SAMPLES)))
    for name in SHORT_NAMES:
        assert len(printed(kubectl("get", name, "-A")).splitlines()) == 2, name
    table = printed(kubectl("get", "pg"))
    assert table.split()[:7] == ["NAME", "PHASE", "MINMEMBER", "RUNNING", "SUCCEEDED", "FAILED", "AGE"]
    for sample in SAMPLES.read_text().split("\n---\n"):
        right, wrong, why = REFUSED[yaml.safe_load(sample)["kind"]]
        answer = kubectl("apply", "-f", "-", stdin=sample.replace(right, wrong, 1))
        assert answer.code == 1
        assert why in answer.err, answer


def test_definitions_and_samples_apply_to_a_real_api_server(fresh_control_plane: ControlPlane, tmp_path: Path) -> None:
    check(Kubectl(fresh_control_plane.kubeconfig_path, tmp_path))


def test_definitions_and_samples_apply_to_the_embedded_api(testbed_programs: None, tmp_path: Path) -> None:
    with PodiumUp("--port", "0", "--nodes", "1", "--workload", "none", home=tmp_path) as up:
        check(Kubectl(up.kubeconfig, tmp_path))
