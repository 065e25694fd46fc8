"""`podium manifest extender`: what runs agents beside a kube-scheduler of their own."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from podium import packages
from podium.extender.agents import choose
from podium.manifests.extender import ExtenderSettings, process_rights, scheduler_config
from podium.plugins import load_registry
from tests.podium.cli.command import podium

DEPLOY = Path(__file__).parents[3] / "deploy" / "extender"
SETS = [*packages.agents(), "safe,congestion", "safe,pigeon"]
REGISTRY = load_registry()


def printed(*arguments: str) -> list[dict[str, Any]]:
    ran = podium("manifest", "extender", "--image", "podium:test", *arguments)
    assert (ran.code, ran.err) == (0, "")
    return list(yaml.safe_load_all(ran.out))


@pytest.mark.parametrize("agents", SETS)
def test_the_files_are_what_the_command_prints(agents: str) -> None:
    file = DEPLOY / f"{agents.replace(',', '-')}.yaml"
    assert file.read_text() == podium("manifest", "extender", "--agents", agents).out, f"make {file.name} anew"


def test_the_first_line_stays_a_comment_whatever_a_value_holds() -> None:
    ran = podium("manifest", "extender", "--agents", "safe", "--env", "A=b\nkind: Secret")
    lines = ran.out.splitlines()
    assert lines[0] == "# podium manifest extender --agents safe --env 'A=b\\nkind: Secret'"
    assert next(line for line in lines if not line.startswith("#")) == "apiVersion: v1"


def test_there_are_no_other_files() -> None:
    assert {file.stem for file in DEPLOY.glob("*.yaml")} == {agents.replace(",", "-") for agents in SETS}


@pytest.mark.parametrize("agents", SETS)
def test_the_configuration_of_kube_scheduler_can_be_used(agents: str, tmp_path: Path) -> None:
    (config,) = (each for each in printed("--agents", agents) if each["kind"] == "ConfigMap")
    file = tmp_path / "scheduler.yaml"
    file.write_text(config["data"]["scheduler.yaml"])
    ran = podium("check", str(file))
    assert (ran.code, ran.err) == (0, "")


def entries(agents: str, **settings: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = scheduler_config(choose(agents.split(","), REGISTRY), ExtenderSettings(**settings))[
        "extenders"
    ]
    return found


def test_two_agents_have_a_port_and_an_entry_each() -> None:
    common = {"httpTimeout": "2s", "nodeCacheCapable": True, "ignorable": True}
    assert entries("safe,congestion") == [
        {
            "urlPrefix": "http://127.0.0.1:5401/safe",
            "filterVerb": "filter",
            "prioritizeVerb": "prioritize",
            "weight": 1,
            **common,
        },
        {"urlPrefix": "http://127.0.0.1:5402/congestion", "prioritizeVerb": "prioritize", "weight": 1, **common},
    ]
    pod = next(each for each in printed("--agents", "safe,congestion") if each["kind"] == "Deployment")["spec"]
    containers = pod["template"]["spec"]["containers"]
    ports = {each["name"]: [port["containerPort"] for port in each.get("ports", ())] for each in containers}
    assert ports == {"kube-scheduler": [], "extender-1": [5401], "extender-2": [5402]}
    assert {"name": "HTTP_PORT", "value": "5402"} in containers[2]["env"]
    assert {"name": "CONGESTION_FACTOR_MAX", "value": "10"} in containers[2]["env"]


def test_the_agents_of_one_keep_their_weights() -> None:
    assert [(each.get("filterVerb"), each["prioritizeVerb"], each["weight"]) for each in entries("safe")] == [
        ("predicates/safe-overload", "priorities/safe-overload", 1),
        (None, "priorities/safe-balance", 10),
    ]
    for agent in ("congestion", "pigeon", "reward", "load", "learned", "online"):
        (entry,) = entries(agent)
        assert entry["weight"] == 10


def test_nodes_may_be_sent_as_a_whole() -> None:
    assert [each["nodeCacheCapable"] for each in entries("safe,congestion", names_only=False)] == [False, False]


LEASE = ("coordination.k8s.io", "leases", "get update")


@pytest.mark.parametrize(
    ("agents", "cluster", "within"),
    [
        ("safe", {("", "nodes", "list watch")}, {LEASE}),
        ("congestion", {("", "nodes", "list watch")}, {LEASE}),
        ("pigeon", {("", "nodes", "list watch"), ("", "pods", "list watch")}, {LEASE}),
        ("load", {("", "nodes", "list watch"), ("", "pods", "list watch")}, {LEASE}),
        *(
            (
                agent,
                {("", "nodes", "list watch"), ("", "pods", "list watch")},
                {LEASE, ("", "configmaps", "create"), ("", "configmaps", "get update")},
            )
            for agent in ("reward", "online")
        ),
        ("safe,congestion", {("", "nodes", "list watch")}, {LEASE}),
    ],
)
def test_the_agents_role_has_what_they_watch_and_keep_and_nothing_else(
    agents: str, cluster: set[tuple[str, str, str]], within: set[tuple[str, str, str]]
) -> None:
    rights = process_rights(choose(agents.split(","), REGISTRY), REGISTRY, ExtenderSettings())
    found = [
        {
            (group, resource, " ".join(rule["verbs"]))
            for rule in role["rules"]
            for group in rule["apiGroups"]
            for resource in rule["resources"]
        }
        for role in rights.objects("mine", "kube-system")
        if role["kind"] in ("ClusterRole", "Role")
    ]
    assert found == [cluster, within]


def test_everything_is_named_and_placed_as_told() -> None:
    objects = printed(
        *("--agents", "reward", "--name", "mine", "--namespace", "lab", "--image", "own/podium:1"),
        *("--scheduler-image", "own/scheduler:2", "--env", "REWARD_CONFIG_MAP=lessons", "--env", "EMPTY="),
    )
    by_kind = {each["kind"]: each for each in objects}
    deployment = by_kind["Deployment"]
    assert deployment["metadata"]["namespace"] == "lab"
    scheduler, extender = deployment["spec"]["template"]["spec"]["containers"]
    assert (scheduler["image"], extender["image"]) == ("own/scheduler:2", "own/podium:1")
    variables = {each["name"]: each["value"] for each in extender["env"]}
    assert variables["REWARD_CONFIG_MAP"] == "lessons"
    assert variables["REWARD_NAMESPACE"] == "lab"
    assert variables["EMPTY"] == ""
    assert ["lessons"] in [rule.get("resourceNames") for rule in by_kind["Role"]["rules"]]
    assert by_kind["Pod"]["spec"]["schedulerName"] == "mine"
    # Whoever runs beside it under another name is not touched.
    assert all(each["metadata"]["name"].startswith("mine") for each in objects)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "say which agents: --agents safe,congestion,pigeon,load,reward,learned,online, some of these"),
        (("--agents", "nobody"), 'there is no agent "nobody"'),
        (("--agents", "safe", "--env", "NAME"), '--env "NAME": write it as NAME=VALUE'),
        (("--agents", "safe", "--env", "A B=1"), '--env "A B": write it as NAME=VALUE'),
    ],
)
def test_input_that_cannot_be_meant_is_told(arguments: tuple[str, ...], sentence: str) -> None:
    ran = podium("manifest", "extender", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert sentence in ran.err


def test_arguments_of_plugins_reach_the_agents_as_a_file(tmp_path: Path) -> None:
    file = tmp_path / "metrics.yaml"
    file.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{pluginConfig: [{name: SafeOverload, args: {percentile: 20}}]}]\n"
    )
    objects = printed("--agents", "safe,congestion", "--config", str(file))
    (config,) = (each for each in objects if each["kind"] == "ConfigMap")
    (deployment,) = (each for each in objects if each["kind"] == "Deployment")
    scheduler, *agents = deployment["spec"]["template"]["spec"]["containers"]
    assert config["data"]["agents.yaml"] == file.read_text()
    assert "--config=/etc/podium/scheduler.yaml" in scheduler["command"]
    for agent in agents:
        assert agent["args"][-2:] == ["--config", "/etc/podium/agents.yaml"]
        assert {"name": "config", "mountPath": "/etc/podium", "readOnly": True} in agent["volumeMounts"]


def test_arguments_that_cannot_be_used_are_refused_before_they_reach_a_cluster(tmp_path: Path) -> None:
    file = tmp_path / "metrics.yaml"
    file.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "profiles: [{pluginConfig: [{name: SafeOverload, args: {percentil: 20}}]}]\n"
    )
    ran = podium("manifest", "extender", "--agents", "safe", "--config", str(file))
    assert (ran.code, ran.out) == (2, "")
    assert "did you mean percentile?" in ran.err
