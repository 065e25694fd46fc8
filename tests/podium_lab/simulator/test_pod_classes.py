"""Pods are counted by shape, priority, namespace and label, and what is counted adds up to the whole."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from podium.kube.pod import PodSpec
from podium_lab.simulator import simulate
from podium_lab.simulator.pod_classes import COUNTS, MOST_CELLS, PodClasses
from podium_lab.simulator.pods import PodTemplate
from podium_lab.simulator.summary import class_tables
from tests.podium_lab.simulator.scenarios import last, loaded, run_one

TWO_SHAPES = """
nodes: {count: 2, allocatable: {cpu: 4, memory: 8Gi}}
workload:
  generate:
    count: 60
    interval: {exponential: 10s}
    lifetime: 2m
    namespace: work
    shapes:
      - {name: web, requests: {cpu: 1}, labels: {app: web}}
      - {requests: {cpu: 3}, labels: {app: batch, job-name: x}, priority: -5}
checkpoints: {every: 30s}
duration: 12m
faults: [{kind: drain, every: 3m, lasts: 1m}]
"""


@pytest.mark.parametrize("how", ["", "unschedulable: drop\n", "evicted: lost\n"])
def test_the_classes_of_a_kind_add_up_to_all_pods(how: str) -> None:
    run = run_one(TWO_SHAPES + how)
    end = last(run)
    assert {(each.by, each.name) for each in run.classes} == {
        ("shape", "web"),
        ("shape", "shapes[1]"),
        ("priority", "0"),
        ("priority", "-5"),
        ("namespace", "work"),
        ("label app", "web"),
        ("label app", "batch"),
    }
    for by in ("shape", "priority", "namespace", "label app"):
        classes = [each.figures for each in run.classes if each.by == by]
        for name in COUNTS:
            assert sum(each[name] for each in classes) == end[name], (by, name)
        waited = sum(each["wait_mean_s"] * each["placed"] for each in classes)
        assert waited / end["placed"] == pytest.approx(end["wait_mean_s"])
        assert max(each["wait_max_s"] for each in classes) == end["wait_max_s"]
    assert end["evictions"] > 0


def test_what_tells_no_pods_apart_is_not_shown() -> None:
    shown = class_tables(simulate(loaded(TWO_SHAPES), seeds=[1, 2]))
    assert list(shown) == ["shape"], "one namespace, and priority and label part pods as the shape does"
    assert shown["shape"]["web"]["default"]["arrived"].seeds == 2


def test_classes_are_written_as_csv(tmp_path: Path) -> None:
    simulate(loaded(TWO_SHAPES), seeds=[1]).write_csv(tmp_path)
    with (tmp_path / "classes.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["class"] for row in rows if row["by"] == "label app"} == {"batch", "web"}
    assert all(float(row["wait_p95_s"]) >= 0 for row in rows)


def test_pods_of_too_many_classes_are_counted_and_said() -> None:
    classes = PodClasses()
    for i in range(MOST_CELLS + 7):
        classes.of(PodTemplate(PodSpec(), labels={"mine": str(i)})).arrived += 1
    assert classes.untold == 7
    assert sum(each.by == "label mine" for each in classes.results()) == MOST_CELLS
