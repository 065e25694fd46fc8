"""`podium up` serves the custom resources that plugins schedule by, and keeps them up to date."""

import random
import re
from pathlib import Path

from podium.controllers.catalog import definitions
from podium.framework import ManualClock
from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.up.creation import create, install_definitions
from podium_cluster.up.manifests import Manifest
from podium_cluster.up.picture import QuotaUse, quotas_in_use
from tests.podium.run.crowd import until
from tests.podium_cluster.apiserver.kubectl import Kubectl, comparable, printed
from tests.podium_cluster.up.up_process import PodiumUp
from tests.together.controllers.test_on_a_cluster import install, start
from tools.testbed import ControlPlane

ROOT = Path(__file__).parents[3]
SAMPLES = ROOT / "tests" / "podium_plugins" / "samples.yaml"
TIMEOUT = "--timeout=60s"


def test_a_gang_and_its_group_come_up_from_the_examples(testbed_programs: None, tmp_path: Path) -> None:
    config = ROOT / "examples" / "config" / "coscheduling.yaml"
    workload = ROOT / "examples" / "manifests" / "pod-group.yaml"
    options = ("--port", "0", "--nodes", "3", "--speed", "50", "--config", str(config), "--workload", str(workload))
    with PodiumUp(*options, home=tmp_path) as up:
        kubectl = Kubectl(up.kubeconfig, tmp_path)
        printed(kubectl("wait", "--for=jsonpath={.status.phase}=Running", "pg/training", TIMEOUT))
        assert re.search(r"^training +Running +3 +3 ", printed(kubectl("get", "podgroups")), re.M)
        assert "Traceback" not in up.output


def test_quotas_are_counted_and_the_event_says_so(testbed_programs: None, tmp_path: Path) -> None:
    with PodiumUp("--port", "0", "--nodes", "3", "--speed", "50", "--workload", "none", home=tmp_path) as up:
        kubectl = Kubectl(up.kubeconfig, tmp_path)
        printed(kubectl("apply", "-f", str(SAMPLES)))
        printed(kubectl("run", "web", "--image=nginx", '--overrides={"spec":{"containers":[{"name":"web","image":"i",'
                        '"resources":{"requests":{"cpu":"1500m"}}}]}}'))  # fmt: skip
        printed(kubectl("wait", "--for=jsonpath={.status.used.cpu}=1500m", "eq/test", TIMEOUT))
        described = printed(kubectl("describe", "eq", "test"))
        assert re.search(r"Normal +Synced .*Elastic Quota default/test synced successfully", described)
        order = printed(kubectl("get", "ag", "a1", "-o", "jsonpath={.status.topologyOrder[*].workload.name}"))
        assert order == "p1 p2"
        printed(kubectl("apply", "-f", "-", stdin=CIRCLE))
        until(lambda: "in a circle (p1 → p2 → p1)" in printed(kubectl("describe", "ag", "a1")), "a circle is reported")
        assert "Traceback" not in up.output


CIRCLE = """
apiVersion: appgroup.diktyo.x-k8s.io/v1alpha1
kind: AppGroup
metadata: {name: a1}
spec:
  numMembers: 2
  topologySortingAlgorithm: TarjanSort
  workloads:
    - workload: {kind: Deployment, name: p1, selector: p1}
      dependencies: [{workload: {kind: Deployment, name: p2, selector: p2}}]
    - workload: {kind: Deployment, name: p2, selector: p2}
      dependencies: [{workload: {kind: Deployment, name: p1, selector: p1}}]
"""


def test_kubectl_shows_the_same_tables_as_on_a_real_cluster(fresh_control_plane: ControlPlane, tmp_path: Path) -> None:
    plane = fresh_control_plane
    install(plane, definitions())
    start(plane, kubeconfig=plane.kubeconfig_path)
    with PodiumUp("--port", "0", "--nodes", "0", "--workload", "none", home=tmp_path) as up:
        shown = []
        for kubeconfig in (plane.kubeconfig_path, up.kubeconfig):
            kubectl = Kubectl(kubeconfig, tmp_path / kubeconfig.name)
            printed(kubectl("apply", "-f", str(SAMPLES)))
            printed(kubectl("wait", "--for=jsonpath={.status.phase}=Pending", "pg/nginx", TIMEOUT))
            printed(kubectl("wait", "--for=jsonpath={.status.used.cpu}=0", "eq/test", TIMEOUT))
            printed(kubectl("wait", "--for=jsonpath={.status.runningWorkloads}=0", "ag/a1", TIMEOUT))
            kinds = "pg,eq,ag,nt,sp,node-res-topo"
            shown.append(comparable(printed(kubectl("get", kinds)) + printed(kubectl("get", kinds, "-o", "wide"))))
    assert shown[0] == shown[1]
    assert "nginx Pending 3" in shown[0]


def test_the_fullest_resource_of_a_quota_is_shown() -> None:
    api = EmbeddedApi(clock=ManualClock(), rng=random.Random(1))
    assert quotas_in_use(api) == []
    install_definitions(api)
    spec = {"min": {"cpu": 2}, "max": {"cpu": 4, "memory": "8Gi"}}
    for name, used in (("a", {"cpu": "1", "memory": "6Gi"}), ("b", {"cpu": "4"})):
        quota = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "ElasticQuota", "metadata": {"name": name}}
        create(api, [Manifest(SAMPLES, {**quota, "spec": spec})])
        kind = api.kinds.by_kind("scheduling.x-k8s.io/v1alpha1", "ElasticQuota")
        assert kind is not None
        stored = next(each for each in api.list(kind) if each["metadata"]["name"] == name)
        api.store.put(kind, {**stored, "status": {"used": used}})
    gib = 2**30 * 10**9
    assert quotas_in_use(api) == [
        QuotaUse("default/b", "cpu", 4 * 10**9, 4 * 10**9, 2 * 10**9),
        QuotaUse("default/a", "memory", 6 * gib, 8 * gib, 0),
    ]
