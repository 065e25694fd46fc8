"""Objects beside nodes and pods: gangs come all or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from podium_lab.simulator import ScenarioError
from podium_lab.simulator.sweep import plan
from podium_lab.simulator.workload import read_custom
from tests.podium_lab.simulator.scenarios import last, loaded, run_one

GROUP = """
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: gang, namespace: default, creationTimestamp: "2026-01-01T00:00:00Z"}
spec: {minMember: 3}
"""
SCENARIO = """
nodes: {{count: 1, allocatable: {{cpu: {cpu}, memory: 8Gi}}}}
objects: [{file}]
workload:
  generate:
    count: 3
    lifetime: 60s
    shapes: [{{requests: {{cpu: 1}}, labels: {{scheduling.x-k8s.io/pod-group: gang}}}}]
duration: 10m
profiles:
- name: gangs
  profile:
    plugins: {{multiPoint: {{enabled: [{{name: Coscheduling}}], disabled: [{{name: PrioritySort}}]}}}}
"""


@pytest.mark.parametrize(("cpu", "ended", "pending"), [(3, 3, 0), (2, 0, 3)])
def test_a_gang_is_placed_whole_or_waits_whole(cpu: int, ended: int, pending: int, tmp_path: Path) -> None:
    file = tmp_path / "groups.yaml"
    file.write_text(GROUP)
    end = last(run_one(SCENARIO.format(cpu=cpu, file=file)))
    assert (end["ended"], end["pending"], end["running"]) == (ended, pending, 0)


def test_kinds_of_kubernetes_are_no_custom_resources() -> None:
    text = GROUP + "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: a}\n"
    assert [each.resource for each in read_custom(text, "f")] == ["podgroups.scheduling.x-k8s.io"]
    text += "".join(f"---\napiVersion: v1\nkind: {kind}\nmetadata: {{name: a}}\n" for kind in ("Secret", "ConfigMap"))
    assert [each.resource for each in read_custom(text, "f")] == ["podgroups.scheduling.x-k8s.io", "configmaps"]


def test_a_custom_resource_without_a_name_is_told() -> None:
    with pytest.raises(ScenarioError, match=r"f:\d+: PodGroup: expected metadata\.name"):
        list(read_custom("apiVersion: scheduling.x-k8s.io/v1alpha1\nkind: PodGroup\n", "f"))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\xff\xfe\x00", "not UTF-8 text"),
        (b"apiVersion: a.example.com/v1\nkind: X\nmetadata: {name: [1]}\n", "expected metadata.name"),
    ],
)
def test_a_file_of_objects_that_is_none_is_refused(data: bytes, words: str, tmp_path: Path) -> None:
    file = tmp_path / "objects.yaml"
    file.write_bytes(data)
    with pytest.raises(ScenarioError, match=words):
        run_one(SCENARIO.format(cpu=1, file=file))


def test_an_empty_list_has_no_custom_resources() -> None:
    assert not list(read_custom("apiVersion: v1\nkind: List\nitems:\n", "f"))


def test_objects_that_nothing_reads_are_named(tmp_path: Path) -> None:
    file = tmp_path / "groups.yaml"
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a}]}\n"
    file.write_text(f"{GROUP}---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {{name: a}}\n---\n{pod}")
    planned = plan(loaded(SCENARIO.format(cpu=3, file=file)), None, None)
    assert planned.oddities == (
        f"{file}: 1 of kind Pod left out: nothing reads them here",
        f"{file}: 1 of kind apps/v1 Deployment left out: nothing reads them here",
    )
