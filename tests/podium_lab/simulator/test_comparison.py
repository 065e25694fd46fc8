"""Profiles are compared seed by seed, and intervals are those of the differences."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import pytest

from podium_lab.simulator import simulate
from podium_lab.simulator.comparison import Compared, compare, detailed_rows, shown_differences, write_differences
from podium_lab.simulator.results import SimulationResults
from podium_lab.simulator.summary import estimate
from tests.podium_lab.simulator.scenarios import COMPARED, loaded


@pytest.fixture(scope="module")
def results() -> SimulationResults:
    return simulate(loaded(COMPARED))


def test_a_difference_is_that_of_each_seed_with_its_interval(results: SimulationResults) -> None:
    found = {(each.profile, each.against, each.measured): each for each in compare(results)}
    empty = found["packed", "default", Compared("empty_nodes")]
    assert list(empty.of_seeds) == [1, 2, 3, 4]
    assert empty.estimate == estimate(list(empty.of_seeds.values()))
    assert empty.clear
    assert empty.estimate.mean - empty.estimate.margin > 0, "packing leaves more nodes without pods"
    same = [each for (profile, against, _), each in found.items() if (profile, against) == ("the same", "default")]
    assert same
    assert not any(value for each in same for value in each.of_seeds.values())
    assert not any(each.clear for each in same)
    assert {each[:2] for each in found} == {("packed", "default"), ("the same", "default"), ("the same", "packed")}


def test_waits_of_a_class_are_compared(results: SimulationResults) -> None:
    wanted = Compared("wait_mean_s", None, "shape", "batch")
    (batch,) = (each for each in compare(results) if (each.profile, each.measured) == ("packed", wanted))
    waits = {
        (run.profile, run.seed): of.figures["wait_mean_s"]
        for run in results.runs
        for of in run.classes
        if of.name == "batch"
    }
    assert batch.of_seeds == {seed: waits["packed", seed] - waits["default", seed] for seed in range(1, 5)}


def test_what_differs_nowhere_is_not_shown(results: SimulationResults) -> None:
    shown = shown_differences(results, compare(results))
    assert Compared("wait_mean_s", None, "shape", "batch") in shown
    assert Compared("placed") not in shown
    assert set(shown[Compared("wait_mean_s")]) == {"packed", "the same"}
    one = simulate(loaded(COMPARED), seeds=7)
    assert shown_differences(one, compare(one)) == {}
    assert all(math.isnan(each.estimate.margin) and not each.clear for each in compare(one))


def test_the_last_row_of_a_run_has_its_classes_and_differences(results: SimulationResults) -> None:
    rows = list(detailed_rows(results, compare(results)))
    ends = [row for row in rows if "classes" in row]
    assert [(row["profile"], row["seed"]) for row in ends] == [(run.profile, run.seed) for run in results.runs]
    assert ends[0]["differences"] == []
    (mine,) = (each for each in ends[4]["differences"] if each["figure"] == "empty_nodes")
    assert (mine["against"], mine["seeds"], mine["clear"]) == ("default", 4, True)
    assert {each["class"] for each in ends[0]["classes"] if each["by"] == "shape"} == {"web", "batch"}
    plain = [{name: row[name] for name in row if name not in ("classes", "differences")} for row in rows]
    assert plain == list(results.rows())


def test_differences_are_written_as_csv(results: SimulationResults, tmp_path: Path) -> None:
    with write_differences(compare(results), tmp_path / "differences.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {(row["by"], row["class"]) for row in rows} >= {("", ""), ("shape", "web"), ("shape", "batch")}
    assert all(float(row["smallest"]) <= float(row["mean"]) <= float(row["largest"]) for row in rows)
