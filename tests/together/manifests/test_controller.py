"""`podium manifest controller`: the rights of the enabled controllers, and no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from podium import packages
from tests.podium.cli.command import podium

DEPLOYED = Path(__file__).parents[3] / "deploy" / "controller" / "podium-controller.yaml"
SHARED = {
    ("events.k8s.io", "events", "create"),
    ("events.k8s.io", "events", "patch"),
    ("authentication.k8s.io", "tokenreviews", "create"),
    ("authorization.k8s.io", "subjectaccessreviews", "create"),
}
SCHEDULING, APP_GROUP, TOPOLOGY = (
    "scheduling.x-k8s.io",
    "appgroup.diktyo.x-k8s.io",
    "networktopology.diktyo.x-k8s.io",
)


def objects(*options: str) -> dict[str, dict[str, Any]]:
    ran = podium("manifest", "controller", "--image", "podium:test", *options)
    assert (ran.code, ran.err) == (0, "")
    return {each["kind"]: each for each in yaml.safe_load_all(ran.out)}


def rights(role: dict[str, Any]) -> set[tuple[str, str, str]]:
    return {
        (group, resource, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def reading(group: str, *resources: str) -> set[tuple[str, str, str]]:
    return {(group, resource, verb) for resource in resources for verb in ("list", "watch")}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *(
            (
                plural.removesuffix("s"),
                {*reading("", "pods"), *reading(SCHEDULING, plural), (SCHEDULING, status, "patch")},
            )
            for plural, status in (("podgroups", "podgroups/status"), ("elasticquotas", "elasticquotas/status"))
        ),
        (
            "appgroup",
            {
                *reading("", "pods"),
                *reading(APP_GROUP, "appgroups"),
                (APP_GROUP, "appgroups", "patch"),
                (APP_GROUP, "appgroups/status", "patch"),
            },
        ),
        (
            "networktopology",
            {
                *reading("", "pods", "nodes"),
                ("", "configmaps", "get"),
                *reading(APP_GROUP, "appgroups"),
                *reading(TOPOLOGY, "networktopologies"),
                (TOPOLOGY, "networktopologies", "patch"),
                (TOPOLOGY, "networktopologies/status", "patch"),
            },
        ),
    ],
)
def test_a_controller_gets_what_it_declares_and_no_more(name: str, expected: set[tuple[str, str, str]]) -> None:
    assert rights(objects("--controllers", name)["ClusterRole"]) == expected | SHARED


def test_the_lease_is_in_a_role_of_its_own() -> None:
    found = objects("--namespace", "lab")
    assert found["Role"]["metadata"]["namespace"] == "lab"
    assert found["Role"]["rules"][1]["resourceNames"] == ["podium-controller"]
    [container] = found["Deployment"]["spec"]["template"]["spec"]["containers"]
    arguments = container["args"]
    assert arguments[arguments.index("--leader-elect-resource-namespace") + 1] == "lab"
    assert arguments[arguments.index("--controllers") + 1].split(",") == list(packages.controllers())


def test_the_file_in_deploy_is_what_the_command_prints() -> None:
    assert DEPLOYED.read_text() == podium("manifest", "controller").out


def test_a_controller_that_there_is_not_is_bad_input() -> None:
    for command in (["manifest", "controller"], ["controller"]):
        ran = podium(*command, "--controllers", "podgroup,gangs")
        assert (ran.code, ran.out) == (2, "")
        known = "podgroup, elasticquota, appgroup, networktopology"
        assert ran.err == f'there is no controller "gangs"; there are {known}\n'
