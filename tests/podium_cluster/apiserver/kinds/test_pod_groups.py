"""PodGroups and Workloads are admitted and refused in the words of the real API server."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from podium.framework import ManualClock
from podium.kube.json_object import without_null_fields
from podium_cluster.apiserver.api import EmbeddedApi
from podium_cluster.apiserver.errors import StatusError
from podium_cluster.apiserver.kinds import WORKLOAD_KINDS, built_in
from podium_cluster.apiserver.store.database import Database, Row
from tools.testbed.apiclient import ApiError
from tools.testbed.cluster import ControlPlane

VERSION = "scheduling.k8s.io/v1beta1"
GATES = ("GenericWorkload", "TopologyAwareWorkloadScheduling")
GANG = {"schedulingPolicy": {"gang": {"minCount": 2}}}


def made(name: str, spec: dict[str, Any], kind: str = "PodGroup") -> dict[str, Any]:
    return {"apiVersion": VERSION, "kind": kind, "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def keyed(*keys: str) -> dict[str, Any]:
    return {**GANG, "schedulingConstraints": {"topology": [{"key": key} for key in keys]}}


def from_template(workload: str, template: str) -> dict[str, Any]:
    return {**GANG, "workloadRef": {"workloadName": workload, "templateName": template}}


def templates(*names: str) -> dict[str, Any]:
    return {"podGroupTemplates": [{"name": name, "schedulingPolicy": {"basic": {}}} for name in names]}


CASES = [
    made("w", templates("t"), "Workload"),
    made("no-templates", {"podGroupTemplates": []}, "Workload"),
    made("nine", templates(*(f"t{i}" for i in range(9))), "Workload"),
    made("twice", templates("t", "t"), "Workload"),
    made("gang", GANG),
    made("basic", {"schedulingPolicy": {"basic": {}}}),
    made("none", {}),
    made("both", {"schedulingPolicy": {"basic": {}, "gang": {"minCount": 1}}}),
    made("zero", {"schedulingPolicy": {"gang": {"minCount": 0}}}),
    made("negative", {"schedulingPolicy": {"gang": {"minCount": -1}}}),
    made("key", keyed("zone")),
    made("two-keys", keyed("a", "b")),
    made("bad-key", keyed("a b")),
    made("empty-key", keyed("")),
    made("mode", {**GANG, "disruptionMode": {"all": {}}}),
    made("no-mode", {**GANG, "disruptionMode": {}}),
    made("two-modes", {**GANG, "disruptionMode": {"all": {}, "single": {}}}),
    made("priority", {**GANG, "priority": 5}),
    made("no-class", {**GANG, "priorityClassName": "nope"}),
    made("system-class", {**GANG, "priorityClassName": "system-node-critical"}),
    made("no-workload", from_template("x", "t")),
    made("template", from_template("w", "t")),
    made("no-template", from_template("w", "x")),
    made("unnamed-workload", from_template("", "")),
    made("bad-workload", from_template("A b", "C d")),
]

Create = Callable[[dict[str, Any]], dict[str, Any]]


@pytest.fixture(scope="module")
def real(testbed_programs: None) -> Iterator[Create]:
    gates = dict.fromkeys(GATES, True)
    with ControlPlane(feature_gates=gates, runtime_config={VERSION: True}, priority_admission=True) as plane:
        yield plane.client.create


@pytest.fixture(scope="module")
def embedded() -> Create:
    api = EmbeddedApi(clock=ManualClock(1_800_000_000.0), rng=random.Random(0), gated_kinds=WORKLOAD_KINDS)
    return lambda obj: api.create(built_in(VERSION, obj["kind"]), obj)


@pytest.mark.parametrize("obj", CASES, ids=lambda obj: obj["metadata"]["name"])
def test_the_embedded_api_answers_as_the_real_one(obj: dict[str, Any], real: Create, embedded: Create) -> None:
    assert _answer(embedded, obj) == _answer(real, obj)


def _answer(create: Create, obj: dict[str, Any]) -> Any:
    try:
        made = create(obj)
    except ApiError as error:
        return error.message
    except StatusError as error:
        return str(error)
    return without_null_fields(made["spec"])


def test_nothing_is_served_without_the_gate() -> None:
    api = EmbeddedApi(clock=ManualClock(0.0), rng=random.Random(0))
    assert api.kinds.by_kind(VERSION, "PodGroup") is None


def test_a_group_of_an_older_data_file_is_read_as_the_version_that_is_served(tmp_path: Path) -> None:
    condition = {"type": "PodGroupScheduled", "status": "True", "reason": "Scheduled"}
    old: dict[str, Any] = {
        "kind": "PodGroup",
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "metadata": {"name": "g", "namespace": "default", "uid": "u", "resourceVersion": "3"},
        "spec": {
            **GANG,
            "disruptionMode": "PodGroup",
            "podGroupTemplateRef": {"workload": {"workloadName": "w", "podGroupTemplateName": "t"}},
        },
        "status": {"conditions": [condition]},
    }
    with closing(Database(tmp_path / "data")) as written:
        written._put(
            ("podgroups.scheduling.k8s.io", "default", "g"),
            Row(old["apiVersion"], "PodGroup", msgspec.json.encode(old)),
        )
    clock, rng = ManualClock(1_800_000_000.0), random.Random(0)
    with closing(Database(tmp_path / "data")) as database:
        api = EmbeddedApi(clock=clock, rng=rng, gated_kinds=WORKLOAD_KINDS, database=database)
        found = api.get(built_in(VERSION, "PodGroup"), "default", "g")
    assert found["apiVersion"] == VERSION
    assert found["spec"] == {
        **GANG,
        "disruptionMode": {"all": {}},
        "workloadRef": {"workloadName": "w", "templateName": "t"},
    }
    assert found["status"]["conditions"] == [{**condition, "type": "PodGroupInitiallyScheduled"}]
