"""The rights that `podium manifest run` gives are those that the plugins of the configuration declare."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from podium.config.load import load_config
from podium.manifests.objects import CONFIG_FOLDER, IMAGE
from podium.manifests.scheduler import RunSettings, rights, without_kubeconfig
from podium.plugins import load_registry
from tests.podium.cli.command import podium

REGISTRY = load_registry()
HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
READ = ("list", "watch")
NOTHING_ELSE = "disabled: [{name: '*'}]"
BARE = "queueSort: {enabled: [{name: PrioritySort}]}, bind: {enabled: [{name: DefaultBinder}]}"
DEFAULT_WRITES = {
    ("", "pods", "delete"),
    ("", "persistentvolumes", "patch"),
    ("", "persistentvolumeclaims", "patch"),
    ("resource.k8s.io", "resourceclaims", "create"),
    ("resource.k8s.io", "resourceclaims", "delete"),
    ("resource.k8s.io", "resourceclaims", "get"),
    ("resource.k8s.io", "resourceclaims", "patch"),
    ("resource.k8s.io", "resourceclaims/binding", "patch"),
    ("resource.k8s.io", "resourceclaims/status", "patch"),
}
"""What DefaultPreemption, VolumeBinding and DynamicResources write."""

Triple = tuple[str, str, str]


def objects(folder: Path, text: str, *options: str) -> list[dict[str, Any]]:
    file = folder / "scheduler.yaml"
    file.write_text(HEAD + text)
    ran = podium("manifest", "run", "--config", str(file), *options)
    assert ran.code == 0, ran.err
    return list(yaml.safe_load_all(ran.out))


def triples(found: list[dict[str, Any]], kind: str = "ClusterRole") -> set[Triple]:
    return {
        (group, resource, verb)
        for role in found
        if role["kind"] == kind
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def cluster_role(plugins: str, **more: Any) -> set[Triple]:
    config = load_config(f"{HEAD}profiles: [{{plugins: {{{plugins}}}}}]\n", "config", REGISTRY).config
    return triples(rights(config, REGISTRY, RunSettings(**more)))


@pytest.mark.parametrize(
    ("plugins", "expected"),
    [
        (
            "preFilter: {enabled: [{name: CapacityScheduling}]}",
            {("scheduling.x-k8s.io", "elasticquotas", verb) for verb in READ},
        ),
        (
            "multiPoint: {enabled: [{name: Coscheduling}], disabled: [{name: PrioritySort}]}",
            {("scheduling.x-k8s.io", "podgroups", verb) for verb in READ},
        ),
        (
            "postFilter: {enabled: [{name: PreemptionToleration}]}",
            {("scheduling.k8s.io", "priorityclasses", verb) for verb in READ},
        ),
        ("multiPoint: {enabled: [{name: GpuShare}]}", {("", "pods", "patch")}),
    ],
)
def test_what_plugins_declare_is_what_the_role_allows(plugins: str, expected: set[Triple]) -> None:
    assert cluster_role(plugins) - cluster_role("preFilter: {}") == expected


def test_a_config_map_that_a_plugin_reads_may_be_watched(tmp_path: Path) -> None:
    plugin = tmp_path / "weighed.py"
    plugin.write_text(
        "from podium import Plugin\nclass Weighed(Plugin):\n    resources = ('configmaps/v1',)\n"
        "    def score_node(self, cycle, node): return 0\n"
    )
    profile = "profiles: [{plugins: {multiPoint: {enabled: [{name: Weighed}]}}}]\n"
    allowed = triples(objects(tmp_path, profile, "--plugin", str(plugin)))
    assert {("", "configmaps", verb) for verb in READ} <= allowed


def test_writes_are_allowed_only_to_the_plugins_that_make_them() -> None:
    bare = cluster_role(f"multiPoint: {{{NOTHING_ELSE}}}, {BARE}")
    assert cluster_role("preFilter: {}") - bare == DEFAULT_WRITES
    assert {each for each in bare if each[2] not in READ} == {
        ("", "pods", "get"),
        ("", "pods/binding", "create"),
        ("", "pods/status", "patch"),
        ("events.k8s.io", "events", "create"),
        ("events.k8s.io", "events", "patch"),
        ("authentication.k8s.io", "tokenreviews", "create"),
        ("authorization.k8s.io", "subjectaccessreviews", "create"),
    }


def test_a_shadow_may_write_nothing() -> None:
    found = {each for each in cluster_role("preFilter: {}", shadow=True) if each[2] not in READ}
    assert {resource for _group, resource, _verb in found} == {"tokenreviews", "subjectaccessreviews"}


def test_metrics_server_and_lessons_are_allowed_where_a_plugin_uses_them(tmp_path: Path) -> None:
    source = "pluginConfig: [{name: TargetLoadPacking, args: {metricProvider: {type: KubernetesMetricsServer}}}]"
    found = objects(
        tmp_path, f"profiles: [{{plugins: {{score: {{enabled: [{{name: TargetLoadPacking}}]}}}}, {source}}}]\n"
    )
    assert ("metrics.k8s.io", "nodes", "list") in triples(found)
    keeps = "pluginConfig: [{name: RewardBias, args: {namespace: lab, configMap: lessons}}]"
    found = objects(tmp_path, f"profiles: [{{plugins: {{score: {{enabled: [{{name: RewardBias}}]}}}}, {keeps}}}]\n")
    (role,) = (each for each in found if each["kind"] == "Role" and each["metadata"]["namespace"] == "lab")
    assert [(each["verbs"], each.get("resourceNames")) for each in role["rules"]] == [
        (["create"], None),
        (["get", "update"], ["lessons"]),
    ]


def test_the_command_prints_every_object_and_the_configuration_as_it_was_written(tmp_path: Path) -> None:
    found = objects(tmp_path, "# ours\n", "--name", "mine", "--image", "podium:test", "--service-monitor")
    kinds = [each["kind"] for each in found]
    assert kinds[0] == "ServiceAccount"
    assert kinds[-5:] == ["ConfigMap", "Deployment", "PodDisruptionBudget", "Service", "ServiceMonitor"]
    by_kind = {each["kind"]: each for each in found}
    assert by_kind["ConfigMap"]["data"]["scheduler.yaml"] == f"{HEAD}# ours\n"
    assert by_kind["Deployment"]["spec"]["template"]["spec"]["containers"][0]["image"] == "podium:test"
    assert {each["metadata"]["name"].partition("-")[0] for each in found} == {"mine"}
    file = str(tmp_path / "scheduler.yaml")
    assert podium("manifest", "--config", file).out == podium("manifest", "run", "--config", file).out


def test_the_pods_are_confined_and_there_are_two(tmp_path: Path) -> None:
    (deployment,) = (each for each in objects(tmp_path, "") if each["kind"] == "Deployment")
    assert deployment["spec"]["replicas"] == 2
    pod = deployment["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["topologySpreadConstraints"][0]["topologyKey"] == "kubernetes.io/hostname"
    (container,) = pod["containers"]
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": 10259, "scheme": "HTTPS"}
    assert container["resources"]["requests"].keys() == {"cpu", "memory"}


def test_without_a_lease_there_is_never_a_second_scheduler(tmp_path: Path) -> None:
    found = objects(tmp_path, "leaderElection: {leaderElect: false}\n")
    (deployment,) = (each for each in found if each["kind"] == "Deployment")
    assert (deployment["spec"]["replicas"], deployment["spec"]["strategy"]) == (1, {"type": "Recreate"})
    (shadow,) = (
        each
        for each in objects(tmp_path, "leaderElection: {leaderElect: false}\n", "--shadow")
        if each["kind"] == "Deployment"
    )
    assert (shadow["spec"]["replicas"], shadow["spec"].get("strategy")) == (2, None)


def checksum(found: list[dict[str, Any]]) -> str:
    (deployment,) = (each for each in found if each["kind"] == "Deployment")
    text: str = deployment["spec"]["template"]["metadata"]["annotations"]["podium.dev/config-sha256"]
    return text


def test_another_configuration_makes_other_pods(tmp_path: Path) -> None:
    assert checksum(objects(tmp_path, "")) == checksum(objects(tmp_path, ""))
    assert checksum(objects(tmp_path, "")) != checksum(objects(tmp_path, "# other\n"))


@pytest.mark.parametrize(
    ("text", "lease", "flag"),
    [
        ("", "kube-scheduler", []),
        ("profiles: [{schedulerName: mine}]\n", "podium", ["--leader-elect-resource-name=podium"]),
        ("profiles: [{schedulerName: mine}]\nleaderElection: {resourceName: ours}\n", "ours", []),
    ],
)
def test_a_scheduler_beside_the_clusters_own_has_a_lease_of_its_own(
    text: str, lease: str, flag: list[str], tmp_path: Path
) -> None:
    found = objects(tmp_path, text)
    (role,) = (each for each in found if each["kind"] == "Role")
    assert [each.get("resourceNames") for each in role["rules"]] == [None, [lease]]
    (deployment,) = (each for each in found if each["kind"] == "Deployment")
    arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    assert [each for each in arguments if "resource-name" in each] == flag


def test_a_plugin_in_a_file_goes_into_the_config_map(tmp_path: Path) -> None:
    plugin = tmp_path / "quiet.py"
    plugin.write_text("from podium import Plugin\nclass Quiet(Plugin):\n    def score_node(self, c, n): return 0\n")
    text = "profiles: [{plugins: {score: {enabled: [{name: Quiet}]}}}]\n"
    by_kind = {each["kind"]: each for each in objects(tmp_path, text, "--plugin", str(plugin))}
    assert by_kind["ConfigMap"]["data"]["quiet.py"] == plugin.read_text()
    arguments = by_kind["Deployment"]["spec"]["template"]["spec"]["containers"][0]["args"]
    assert arguments[-1] == "--plugin=/etc/podium/quiet.py"


TUTORIAL = f"""\
# A copy of kubeadm's /etc/kubernetes/scheduler.conf is needed
{HEAD}clientConnection:
  kubeconfig: "/etc/kubernetes/scheduler.conf"  # not /etc/kubernetes/admin.conf, but /etc/kubernetes/scheduler.conf
  qps: 70  # stays
"""


@pytest.mark.parametrize(
    "text",
    [
        TUTORIAL,
        TUTORIAL.replace('"', ""),
        TUTORIAL.replace('"', "'"),
        f"{HEAD}clientConnection: {{qps: 70, kubeconfig: /etc/kubernetes/scheduler.conf}}\n",
        f"{HEAD}clientConnection: {{kubeconfig: /etc/kubernetes/scheduler.conf, qps: 70}}\n",
        f"{HEAD}clientConnection:\n  qps: 70\n  kubeconfig: /etc/kubernetes/scheduler.conf",
        f"{HEAD}clientConnection:\n  qps: 70\n  kubeconfig: >-\n    /etc/kubernetes/scheduler.conf\n",
        f'{HEAD}clientConnection:\n  qps: 70\n  kubeconfig: "\\x2fetc/kubernetes/scheduler.conf"\n',
        json.dumps(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "clientConnection": {"kubeconfig": "/etc/kubernetes/scheduler.conf", "qps": 70},
            }
        ),
    ],
)
def test_a_kubeconfig_of_the_original_is_left_out_and_said_to_be(text: str, tmp_path: Path) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(text)
    ran = podium("manifest", "run", "--config", str(file), "--image", "podium:test")
    assert ran.code == 0
    assert ran.err == (
        f'warning: {file}: clientConnection.kubeconfig "/etc/kubernetes/scheduler.conf" is left empty: '
        "a pod has no such file; it has its service account\n"
    )
    assert "kubernetes/scheduler.conf" not in ran.out
    (config_map,) = (each for each in yaml.safe_load_all(ran.out) if each["kind"] == "ConfigMap")
    config = load_config(config_map["data"]["scheduler.yaml"], "config", REGISTRY).config
    assert (config.client_connection.kubeconfig, config.client_connection.qps) == ("", 70)
    kept = [line for line in text.splitlines() if "scheduler.conf" not in line]
    if "\n" in text and ">-" not in text and "x2f" not in text:  # written in the usual way
        assert [each for each in kept if each not in config_map["data"]["scheduler.yaml"].splitlines()] == []


def test_the_process_of_such_a_manifest_asks_with_its_service_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "given.yaml").write_text(TUTORIAL)
    ran = podium("manifest", "run", "--config", str(tmp_path / "given.yaml"))
    by_kind = {each["kind"]: each for each in yaml.safe_load_all(ran.out)}
    for name, text in by_kind["ConfigMap"]["data"].items():
        (tmp_path / name).write_text(text)
    (container,) = by_kind["Deployment"]["spec"]["template"]["spec"]["containers"]
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")  # as in a pod, but for the token
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "1")
    started = podium(*(each.replace(CONFIG_FOLDER, str(tmp_path)) for each in container["args"]))
    assert started.code == 2
    assert "serviceaccount/token is missing: set automountServiceAccountToken: true" in started.err


def test_a_value_that_only_looks_like_the_kubeconfig_stays() -> None:
    text = f"{HEAD}clientConnection: {{kubeconfig: mine}}\nprofiles: [{{schedulerName: mine}}]  # mine\n"
    assert without_kubeconfig(text, "mine") == (
        f'{HEAD}clientConnection: {{kubeconfig: ""}}\nprofiles: [{{schedulerName: mine}}]\n'
    )


def test_without_a_configuration_the_defaults_run(tmp_path: Path) -> None:
    ran = podium("manifest", "run", "--image", "podium:test")
    assert (ran.code, ran.err) == (0, "")
    found = {each["kind"]: each for each in yaml.safe_load_all(ran.out)}
    assert "ConfigMap" not in found
    pod = found["Deployment"]["spec"]["template"]["spec"]
    assert pod["containers"][0]["args"] == ["run", "--log-format=json"]
    assert (
        [each["name"] for each in pod["volumes"]]
        == ["tmp"]
        == [each["name"] for each in pod["containers"][0]["volumeMounts"]]
    )
    assert triples(list(found.values())) == triples(objects(tmp_path, ""))


def test_without_a_configuration_plugins_in_files_are_mounted(tmp_path: Path) -> None:
    plugin = tmp_path / "quiet.py"
    plugin.write_text("from podium import Plugin\nclass Quiet(Plugin):\n    def score_node(self, c, n): return 0\n")
    ran = podium("manifest", "run", "--plugin", str(plugin))
    found = {each["kind"]: each for each in yaml.safe_load_all(ran.out)}
    assert found["ConfigMap"]["data"].keys() == {"quiet.py"}
    container = found["Deployment"]["spec"]["template"]["spec"]["containers"][0]
    assert container["args"] == ["run", "--log-format=json", "--plugin=/etc/podium/quiet.py"]
    assert container["volumeMounts"][0]["mountPath"] == "/etc/podium"


@pytest.mark.parametrize(
    "command",
    [
        ("manifest", "run"),
        ("manifest", "extender", "--agents", "safe"),
        ("manifest", "controller"),
        ("manifest", "annotate", "usage"),
    ],
)
def test_an_image_that_nobody_can_pull_is_said_to_be_one(command: tuple[str, ...]) -> None:
    sentence = f"{IMAGE} is in no registry: build it (make image), push it, and name it with --image HOST/{IMAGE}"
    ran = podium(*command)
    assert (ran.code, ran.err) == (0, f"warning: the image {sentence}\n")
    assert f"# The image {sentence}.\n" in ran.out
    ran = podium(*command, "--image", "registry.example.com/podium:1")
    assert (ran.code, ran.err) == (0, "")
    assert "in no registry" not in ran.out


def test_a_configuration_that_cannot_be_read_is_bad_input(tmp_path: Path) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text("kind: Pod\n")
    assert podium("manifest", "run", "--config", str(file)).code == 2
    assert "say what is to run" in podium("manifest").err


def test_gates_are_given_to_the_scheduler_with_their_rights(tmp_path: Path) -> None:
    gates = "GenericWorkload=true,GangScheduling=true"
    found = objects(tmp_path, "", "--feature-gates", gates, "--kubernetes-version", "1.36")
    (deployment,) = (each for each in found if each["kind"] == "Deployment")
    arguments = deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    assert arguments[-2:] == [
        "--kubernetes-version=1.36",
        "--feature-gates=GangScheduling=true,GenericWorkload=true",
    ]
    more = triples(found) - triples(objects(tmp_path, ""))
    assert more == {
        ("scheduling.k8s.io", "podgroups", "list"),
        ("scheduling.k8s.io", "podgroups", "watch"),
        ("scheduling.k8s.io", "podgroups/status", "patch"),
    }


NAMED = (
    ("manifest", "run", "--config", "{config}", "--name"),
    ("manifest", "--config", "{config}", "--namespace"),
    ("manifest", "run", "--config", "{config}", "--namespace"),
    ("manifest", "extender", "--agents", "safe", "--name"),
    ("manifest", "extender", "--agents", "safe", "--namespace"),
    ("manifest", "annotate", "usage", "--namespace"),
    ("manifest", "controller", "--namespace"),
)


@pytest.mark.parametrize("command", NAMED, ids=" ".join)
def test_a_name_that_kubernetes_does_not_take_is_bad_input(command: tuple[str, ...], tmp_path: Path) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text(HEAD)
    arguments = [word.format(config=file) for word in command]
    for name in (
        "a: b",
        "",
        "a" * 64,
        "a" * 300,
        "../x",
        "a\nb",
        "\x1b[2J",
        "-a",
        "a-",
        "A",
        "é",
        "a_b",
        "a/b",
        " a",
        "a ",
    ):
        ran = podium(*arguments, name)
        assert (ran.code, ran.out, ran.err.count("\n")) == (2, "", 1)
        assert f'{command[-1]} "' in ran.err
        assert "in Kubernetes: write lower-case letters" in ran.err
        assert len(ran.err) < 300
    assert podium(*arguments, "a-1").code == 0


@pytest.mark.parametrize("image", ["a b", "a\nb", "\x1bc"])
def test_an_image_of_several_words_is_bad_input(image: str) -> None:
    ran = podium("manifest", "controller", "--image", image)
    assert (ran.code, ran.out) == (2, "")
    assert "cannot name an image: write it as HOST/NAME:TAG" in ran.err


def test_a_plugin_file_that_no_config_map_holds_is_bad_input(tmp_path: Path) -> None:
    file, config = tmp_path / "my plugin.py", tmp_path / "scheduler.yaml"
    config.write_text(HEAD)
    file.write_text("from podium import Plugin\nclass Mine(Plugin):\n    def score_node(self, cycle, node): return 1\n")
    ran = podium("manifest", "run", "--config", str(config), "--plugin", str(file))
    assert (ran.code, ran.out) == (2, "")
    assert "a ConfigMap cannot hold a file of that name" in ran.err
