"""What makes objects invalid, without a real server to ask; the contract suite compares every word with one."""

from typing import Any

import pytest

from podium_cluster.apiserver.kinds import BUILT_IN, rules_of

Object = dict[str, Any]
RULES = {kind.qualified: rules_of(kind) for kind in BUILT_IN}


def complaints(kind: str, spec: Object, old: Object | None = None, **top: Any) -> list[str]:
    obj = {"metadata": {"name": "x", "namespace": "default"}, "spec": spec, **top}
    causes = (
        RULES[kind].validate(obj)
        if old is None
        else RULES[kind].validate_update(obj, {"metadata": {"name": "x"}, "spec": old})
    )
    return [f"{cause.field}: {cause.message}" for cause in causes]


def pod(**spec: Any) -> Object:
    filled = {"restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "terminationGracePeriodSeconds": 30}
    return {**filled, "containers": [{"name": "c", "image": "i"}], **spec}


def workload(**spec: Any) -> Object:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod()}
    rolling = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    return {"selector": {"matchLabels": {"a": "b"}}, "template": template, "strategy": rolling, **spec}


def test_good_objects_are_not_complained_about() -> None:
    assert complaints("pods", pod()) == []
    assert complaints("deployments.apps", workload()) == []
    assert complaints("nodes", {"taints": [{"key": "a", "effect": "NoSchedule"}]}) == []


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        (pod(containers=[]), ["spec.containers: Required value"]),
        (
            pod(restartPolicy="Odd"),
            ['spec.restartPolicy: Unsupported value: "Odd": supported values: "Always", "OnFailure", "Never"'],
        ),
        (
            pod(
                containers=[
                    {"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}
                ]
            ),
            ['spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1'],
        ),
        (
            pod(containers=[{"name": "c", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/a"}]}]),
            ['spec.containers[0].volumeMounts[0].name: Not found: "v"'],
        ),
        (
            pod(containers=2 * [{"name": "c", "image": "i"}]),
            ['spec.containers[1].name: Duplicate value: "c"'],
        ),
        (
            pod(schedulingGates=[{"name": "example.com/g"}], nodeName="n"),
            ["spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared"],
        ),
        (
            pod(topologySpreadConstraints=[{"maxSkew": 0, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}]),
            ["spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero"],
        ),
        (
            pod(tolerations=[{"operator": "Exists", "value": "x", "effect": "Odd"}]),
            [
                "spec.tolerations[0].operator: Invalid value: \"x\": value must be empty when `operator` is 'Exists'",
                'spec.tolerations[0].effect: Unsupported value: "Odd": supported values:'
                ' "NoSchedule", "PreferNoSchedule", "NoExecute"',
            ],
        ),
    ],
)
def test_pods(spec: Object, told: list[str]) -> None:
    assert complaints("pods", spec) == told


def test_little_may_change_in_a_pod() -> None:
    before = pod(tolerations=[{"key": "a", "operator": "Exists"}])
    assert complaints("pods", {**before, "containers": [{"name": "c", "image": "new"}]}, before) == []
    more = {**before, "tolerations": [*before["tolerations"], {"key": "b", "operator": "Exists"}]}
    assert complaints("pods", more, before) == []
    assert complaints("pods", {**before, "tolerations": []}, before) == [
        "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"
    ]
    told = complaints("pods", {**before, "nodeName": "n"}, before)
    assert len(told) == 1
    assert told[0].startswith(
        "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
    )
    assert told[0].endswith("\nspec.nodeName")


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        (workload(replicas=-1), ["spec.replicas: Invalid value: -1: must be greater than or equal to 0"]),
        (
            workload(selector={"matchLabels": {"a": "c"}}),
            ['spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match template `labels`'],
        ),
        (
            workload(strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 0}}),
            ["spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0"],
        ),
    ],
)
def test_deployments(spec: Object, told: list[str]) -> None:
    assert complaints("deployments.apps", spec) == told


def test_a_selector_is_for_good() -> None:
    other = workload(selector={"matchExpressions": [{"key": "a", "operator": "Exists"}]})
    assert complaints("deployments.apps", other, workload()) == [
        'spec.selector: Invalid value: {"matchExpressions":[{"key":"a","operator":"Exists"}]}: field is immutable'
    ]


def test_taints_are_unique_by_key_and_effect() -> None:
    twice = [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "value": "x", "effect": "NoSchedule"}]
    told = complaints("nodes", {"taints": twice})
    assert told == [
        'metadata.taints[1]: Duplicate value: {"Key":"a","Value":"x","Effect":"NoSchedule","TimeAdded":null}:'
        " taints must be unique by key and effect pair"
    ]


def test_a_budget_says_one_thing() -> None:
    told = complaints("poddisruptionbudgets.policy", {"minAvailable": 1, "maxUnavailable": "200%"})
    assert told[0].endswith("minAvailable and maxUnavailable cannot be both set")
    assert told[1] == 'spec.maxUnavailable: Invalid value: "200%": must not be greater than 100%'


def test_an_immutable_config_map_stays() -> None:
    old = {"metadata": {"name": "c"}, "data": {"a": "1"}, "immutable": True}
    new = {"metadata": {"name": "c"}, "data": {"a": "2"}, "immutable": True}
    assert [cause.field for cause in RULES["configmaps"].validate_update(new, old)] == ["data"]
