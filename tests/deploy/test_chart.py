"""The Helm chart without a cluster: it can be rendered, refuses nonsense, and gives what `podium manifest` prints."""

from __future__ import annotations

import copy
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.helm import CHART, KUBERNETES, helm, templated
from tests.podium.cli.command import podium
from tests.podium.manifests.deployed import granted
from tests.podium_cluster.up.up_process import PodiumUp
from tools.chart import chart_files

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "config"
LEARNS = """\
profiles:
- plugins: {score: {enabled: [{name: RewardBias}]}}
  pluginConfig: [{name: RewardBias, args: {namespace: lab, configMap: lessons}}]
"""
EVERYTHING = (
    *("--set", "extender.enabled=true,controller.enabled=true,dashboard.enabled=true"),
    *("--set", "annotators.usage.enabled=true,annotators.allocation.enabled=true"),
    *("--set", "scheduler.serviceMonitor=true,controller.serviceMonitor=true"),
)

pytestmark = pytest.mark.usefixtures("helm_program")


def test_files_that_follow_from_the_code_are_up_to_date() -> None:
    for name, text in chart_files().items():
        assert (CHART / "files" / name).read_text() == text, "run python -m tools.chart deploy/helm/podium/files"
    board = ROOT / "deploy" / "grafana" / "podium.json"
    assert (CHART / "files" / "dashboard.json").read_text() == board.read_text()
    assert {file.name for file in (CHART / "files").iterdir()} == {*chart_files(), "dashboard.json"}


def test_helm_finds_nothing_wrong_with_it() -> None:
    for options in ((), EVERYTHING, ("--set", "scheduler.mode=sole"), ("--set", "scheduler.mode=shadow")):
        ran = helm("lint", "--strict", str(CHART), "--kube-version", KUBERNETES, *options)
        assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("scheduler.mode=third", "must be one of"),
        ("scheduler.replica=3", "additional properties 'replica' not allowed"),
        ("scheduler.replicas=0", "minimum"),
        ("controller.controllers={podgroups}", "must be one of"),
        ("annotators.usage.prometheusAddress=prometheus", "does not match pattern"),
        ("extender.enabled=true,extender.agents={safe,load}", "podium manifest extender --agents safe,load prints it"),
        ("scheduler.config=profiles: [,scheduler.enabled=true", "scheduler.config"),
    ],
)
def test_values_that_cannot_be_meant_are_refused(options: str, sentence: str) -> None:
    ran = helm("template", "ours", str(CHART), "--kube-version", KUBERNETES, "--set", options)
    assert ran.returncode != 0
    assert sentence in ran.stderr


def plain(objects: list[dict[str, Any]]) -> dict[tuple[str, str, str], Any]:
    """Objects by kind and name: no leases, no labels of Helm, rules as sets, and options of commands in any order."""
    found = {}
    for each in copy.deepcopy(objects):
        if each["kind"] == "Lease":  # the chart has it only so that it goes with the release
            continue
        labels = each["metadata"].get("labels", {})
        ours = {key: value for key, value in labels.items() if not key.startswith(("helm.sh/", "app.kubernetes.io/"))}
        each["metadata"].pop("labels", None)
        each["metadata"] |= {"labels": ours} if ours else {}
        if each["kind"] == "ClusterRole":
            each["rules"] = sorted(granted([each]))
        if each["kind"] == "Role":
            each["rules"] = sorted(map(str, (sorted(rule.items()) for rule in each["rules"])))
        if each["kind"] == "Deployment":
            for container in each["spec"]["template"]["spec"]["containers"]:
                container["args"] = sorted(container.get("args", ()))
        found[each["kind"], each["metadata"]["name"], each["metadata"].get("namespace", "")] = each
    return found


def printed(*arguments: str) -> dict[tuple[str, str, str], Any]:
    ran = podium("manifest", *arguments)
    assert ran.code == 0, ran.err
    return plain([each for each in yaml.safe_load_all(ran.out) if each["kind"] != "Pod"])


@pytest.mark.parametrize("file", sorted(each.name for each in EXAMPLES.glob("*.yaml")))
def test_a_scheduler_is_what_podium_manifest_prints(file: str) -> None:
    options = ("--set-file", f"scheduler.config={EXAMPLES / file}", "--set", "scheduler.serviceMonitor=true")
    expected = printed("run", "--config", str(EXAMPLES / file), "--service-monitor")
    assert plain(templated(*options)) == expected


@pytest.mark.parametrize(
    ("text", "values", "options"),
    [
        ("profiles: [{schedulerName: mine}]\n", "scheduler.name=mine", ("--name", "mine")),
        ("leaderElection: {resourceName: l, resourceNamespace: lab}\n", "scheduler.name=podium", ()),
        ("leaderElection: {leaderElect: false}\n", "scheduler.name=podium", ()),
        ("profiles: [{}]\n", "scheduler.mode=shadow", ("--shadow",)),
        (
            LEARNS,
            "scheduler.name=podium",
            (),
        ),
        (
            LEARNS,
            "scheduler.mode=shadow",
            ("--shadow",),
        ),
        (
            "profiles: [{}]\n",
            "scheduler.featureGates={GenericWorkload,TopologyAwareWorkloadScheduling}",
            ("--feature-gates", "GenericWorkload=true,TopologyAwareWorkloadScheduling=true"),
        ),
        (
            "profiles: [{plugins: {multiPoint: {disabled: [{name: DefaultPreemption}, {name: VolumeBinding}]}}}]\n",
            "scheduler.name=podium",
            (),
        ),
    ],
)
def test_so_it_is_in_every_mode(text: str, values: str, options: tuple[str, ...], tmp_path: Path) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(f"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n{text}")
    found = templated("--set-file", f"scheduler.config={file}", "--set", values)
    assert plain(found) == printed("run", "--config", str(file), *options)


OLD = "/etc/kubernetes/scheduler.conf"


@pytest.mark.parametrize(
    "connection",
    [
        f"# as {OLD}\nclientConnection:\n  kubeconfig: '{OLD}'  # {OLD} of kubeadm\n  qps: 70  # stays\n",
        f"clientConnection: {{kubeconfig: {OLD}, qps: 70}}\nleaderElection: {{leaderElect: false}}\n",
        f'clientConnection: {{qps: 70, "kubeconfig": "{OLD}"}}\n',
        "clientConnection: {kubeconfig: mine}\nprofiles: [{schedulerName: mine}]\n",
    ],
)
def test_a_kubeconfig_of_the_original_is_left_out_the_same_way(connection: str, tmp_path: Path) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(f"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n{connection}")
    found = plain(templated("--set-file", f"scheduler.config={file}"))
    assert OLD not in str(found)
    assert found == printed("run", "--config", str(file))


def test_a_kubeconfig_in_an_unusual_form_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(f"clientConnection:\n  kubeconfig: >-\n    {OLD}\n")
    ran = helm("template", "ours", str(CHART), "--kube-version", KUBERNETES, "--set-file", f"scheduler.config={file}")
    assert ran.returncode != 0
    assert 'scheduler.config: write clientConnection.kubeconfig: "": a pod has no such file' in ran.stderr


def test_the_notes_say_what_was_left_out_and_that_the_image_is_in_no_registry(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(f"clientConnection: {{kubeconfig: {OLD}}}\n")

    def notes(*options: str) -> str:
        ran = helm("install", "ours", str(CHART), "--dry-run=client", *options, kubeconfig=up.kubeconfig, home=tmp_path)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout.partition("\nNOTES:\n")[2]

    with PodiumUp("--port", "0", "--qos-port", "0", "--nodes", "0", "--workload", "none", home=tmp_path) as up:
        first = notes("--set-file", f"scheduler.config={file}")
        second = notes("--set", "image.repository=registry.lab/podium")
    assert "clientConnection.kubeconfig in scheduler.config was left empty" in first
    assert "name it with --set image.repository=HOST/podium" in first
    assert "schedulerName: podium" in second
    assert "left empty" not in second
    assert "image.repository" not in second


def test_a_plugin_in_a_file_is_mounted_the_same_way(tmp_path: Path) -> None:
    plugin, file = tmp_path / "quiet.py", tmp_path / "scheduler.yaml"
    plugin.write_text("from podium import Plugin\nclass Quiet(Plugin):\n    def score_node(self, c, n): return 0\n")
    file.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{plugins: {score: {enabled: [{name: Quiet}]}}}]\n"
    )
    found = templated(
        *("--set-file", f"scheduler.config={file}", "--set-file", f"scheduler.pluginFiles.quiet\\.py={plugin}")
    )
    assert plain(found) == printed("run", "--config", str(file), "--plugin", str(plugin))


@pytest.mark.parametrize(
    ("mode", "more", "expected"),
    [
        ("second", "", {"schedulerName": "podium"}),
        ("sole", "", {"schedulerName": "default-scheduler"}),
        ("shadow", "", {"schedulerName": "default-scheduler"}),
        ("second", ",scheduler.measuredLoad.enabled=true", {"schedulerName": "podium", "plugins": "MeasuredLoad"}),
    ],
)
def test_a_configuration_is_made_that_podium_can_use(
    mode: str, more: str, expected: dict[str, str], tmp_path: Path
) -> None:
    objects = templated("--set", f"scheduler.mode={mode}{more}")
    (config_map,) = (each for each in objects if each["kind"] == "ConfigMap")
    file = tmp_path / "scheduler.yaml"
    file.write_text(config_map["data"]["scheduler.yaml"])
    assert podium("check", str(file)).code == 0
    (profile,) = yaml.safe_load(file.read_text())["profiles"]
    assert profile["schedulerName"] == expected["schedulerName"]
    assert ("plugins" in profile) is ("plugins" in expected)
    shadow = ("--shadow",) if mode == "shadow" else ()
    assert plain(objects) == printed("run", "--config", str(file), *shadow)


@pytest.mark.parametrize("agents", ["safe", "safe,congestion", "reward", "online"])
def test_an_extender_is_what_podium_manifest_prints(agents: str) -> None:
    values = f"scheduler.enabled=false,extender.enabled=true,extender.agents={{{agents}}}"
    assert plain(templated("--set", values)) == printed("extender", "--agents", agents)


@pytest.mark.parametrize(
    "names", ["podgroup", "podgroup,elasticquota", "podgroup,elasticquota,appgroup,networktopology"]
)
def test_controllers_are_what_podium_manifest_prints(names: str) -> None:
    values = f"scheduler.enabled=false,controller.enabled=true,controller.controllers={{{names}}}"
    found = templated("--set", values, namespace="lab")
    assert plain(found) == printed("controller", "--controllers", names, "--namespace", "lab")


@pytest.mark.parametrize("kind", ["usage", "allocation"])
def test_annotators_are_what_podium_manifest_prints(kind: str) -> None:
    found = templated("--set", f"scheduler.enabled=false,annotators.{kind}.enabled=true")
    assert plain(found) == printed("annotate", kind)


def test_values_reach_the_pods() -> None:
    (deployment,) = (
        each
        for each in templated(
            *("--set", "scheduler.replicas=3,scheduler.nodeSelector.role=infra,image.repository=registry.lab/podium"),
            *("--set", "image.tag=v9,image.pullSecrets[0].name=key,scheduler.resources.requests.cpu=2"),
            *("--set", "scheduler.tolerations[0].operator=Exists"),
        )
        if each["kind"] == "Deployment"
    )
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert deployment["spec"]["replicas"] == 3
    assert (container["image"], container["resources"]) == ("registry.lab/podium:v9", {"requests": {"cpu": 2}})
    assert (pod["nodeSelector"], pod["tolerations"]) == ({"role": "infra"}, [{"operator": "Exists"}])
    assert pod["imagePullSecrets"] == [{"name": "key"}]


def test_the_board_is_a_config_map_that_grafana_finds() -> None:
    (board,) = templated("--set", "scheduler.enabled=false,dashboard.enabled=true")
    assert board["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert board["data"]["podium.json"] == (ROOT / "deploy" / "grafana" / "podium.json").read_text()


def test_a_packaged_chart_has_all_its_files(tmp_path: Path) -> None:
    ran = helm("package", str(CHART), "--destination", str(tmp_path), home=tmp_path)
    assert ran.returncode == 0, ran.stderr
    (package,) = tmp_path.glob("*.tgz")
    shutil.unpack_archive(package, tmp_path)
    assert {each.name for each in (tmp_path / "podium" / "files").iterdir()} == {*chart_files(), "dashboard.json"}


def test_what_plugins_read_is_mounted_and_the_way_to_a_model_is_open() -> None:
    found = templated("--set-file", f"scheduler.config={EXAMPLES / 'model-score.yaml'}")
    (deployment,) = [each for each in found if each["kind"] == "Deployment"]
    pod = deployment["spec"]["template"]["spec"]
    assert {"name": "podium-model", "secret": {"secretName": "podium-model"}} in pod["volumes"]
    mount = {"name": "podium-model", "mountPath": "/var/run/podium/model", "readOnly": True}
    assert mount in pod["containers"][0]["volumeMounts"]
    (policy,) = [each for each in found if each["kind"] == "NetworkPolicy"]
    assert policy["spec"]["egress"] == [{}]
