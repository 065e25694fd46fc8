"""The rights that `podium manifest` gives are those that the plugins of the configuration declare."""

from typing import Any

import pytest
import yaml

from podium.config.load import load_config
from podium.live.manifest import plugin_rules, rights
from podium.plugins import load_registry
from tests.cli.command import podium

REGISTRY = load_registry()
READ = ["get", "list", "watch"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("preFilter: {}", []),
        ("preFilter: {enabled: [{name: CapacityScheduling}]}", [("scheduling.x-k8s.io", ["elasticquotas"], READ)]),
        (
            "preFilter: {enabled: [{name: Coscheduling}, {name: CapacityScheduling}]}",
            [("scheduling.x-k8s.io", ["elasticquotas", "podgroups"], READ)],
        ),
        ("postFilter: {enabled: [{name: PreemptionToleration}]}", [("scheduling.k8s.io", ["priorityclasses"], READ)]),
        ("multiPoint: {enabled: [{name: GpuShare}]}", [("", ["pods"], ["patch"])]),
    ],
)
def test_what_plugins_declare_is_what_the_role_allows(text: str, expected: list[Any]) -> None:
    head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    found = load_config(f"{head}profiles: [{{plugins: {{{text}}}}}]\n", "config", REGISTRY).config
    rules = [(rule["apiGroups"][0], rule["resources"], rule["verbs"]) for rule in plugin_rules(found, REGISTRY)]
    assert rules == expected
    kinds = [each["kind"] for each in rights(found, REGISTRY, name="podium", namespace="kube-system")]
    assert ("ClusterRole" in kinds) is bool(expected)
    assert "Role" in kinds  # for the lease


def test_the_command_prints_every_object_and_the_configuration_as_it_was_written(tmp_path: Any) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration  # ours\n")
    result = podium("manifest", "--config", str(file), "--name", "mine", "--image", "podium:test")
    objects = list(yaml.safe_load_all(result.out))
    assert [each["kind"] for each in objects][-2:] == ["ConfigMap", "Deployment"]
    assert objects[-2]["data"]["scheduler.yaml"] == file.read_text()
    assert objects[-1]["spec"]["template"]["spec"]["containers"][0]["image"] == "podium:test"
    assert {each["metadata"]["name"].partition("-")[0] for each in objects} == {"mine"}


def test_a_configuration_that_cannot_be_read_is_bad_input(tmp_path: Any) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text("kind: Pod\n")
    assert podium("manifest", "--config", str(file)).code == 2


def test_gates_are_given_to_the_scheduler_and_need_no_rights_of_their_own(tmp_path: Any) -> None:
    file = tmp_path / "scheduler.yaml"
    file.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n")
    gates = "GenericWorkload=true,GangScheduling=true"
    objects = list(yaml.safe_load_all(podium("manifest", "--config", str(file), "--feature-gates", gates).out))
    container = objects[-1]["spec"]["template"]["spec"]["containers"][0]
    assert container["args"][-1] == "--feature-gates=GangScheduling=true,GenericWorkload=true"
    assert "ClusterRole" not in {each["kind"] for each in objects}
