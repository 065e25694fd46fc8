"""Sweeps: the same results with any number of workers, what is finished after an interrupt, and their files."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import numpy as np
import pytest

from podium_lab.simulator import Scenario, ScenarioError, simulate, summarise
from podium_lab.simulator.results import SimulationResults, has_parquet
from podium_lab.simulator.run import RunResult
from podium_lab.simulator.scenario import Contender, Distribution, Generated, NodeGroup, PodShape, PodSource
from podium_lab.simulator.summary import estimate
from tests.podium_lab.simulator.scenarios import SMALL

TWO = SMALL + "profiles:\n- {name: a}\n- {name: b}\nseeds: 1-2\n"


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    file = tmp_path / "scenario.yaml"
    file.write_text(TWO)
    return file


def texts(results: SimulationResults, folder: Path) -> list[bytes]:
    folder.mkdir()
    return [path.read_bytes() for path in results.write_csv(folder)]


def test_results_do_not_depend_on_the_number_of_workers(scenario: Path, tmp_path: Path) -> None:
    alone, together = simulate(scenario, workers=1), simulate(scenario, workers=2)
    assert texts(alone, tmp_path / "one") == texts(together, tmp_path / "two")
    assert [run.table.tobytes() for run in alone.runs] == [run.table.tobytes() for run in together.runs]


def test_rows_come_by_profile_seed_and_checkpoint(scenario: Path) -> None:
    results = simulate(scenario)
    keys = [(row["profile"], row["seed"]) for row in results.rows()]
    assert list(dict.fromkeys(keys)) == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]
    assert len(results) == len(keys) == len(results["cpu_allocation_pct"])
    assert "gpu_allocation_pct" not in results.columns


def test_an_interrupt_leaves_what_is_finished(scenario: Path, tmp_path: Path) -> None:
    def interrupt(number: int, _run: RunResult) -> None:
        if number == 2:
            raise KeyboardInterrupt

    results = simulate(scenario, finished=interrupt)
    assert (len(results.runs), results.planned) == (2, 4)
    results.write_csv(tmp_path)
    with (tmp_path / "results.csv").open() as file:
        assert {row["profile"] for row in csv.DictReader(file)} == {"a"}


def test_a_sweep_that_is_interrupted_at_once_has_no_rows(tmp_path: Path) -> None:
    results = SimulationResults(Scenario(nodes=NodeGroup(count=1), workload="x"), [], 4)
    assert len(results) == 0
    results.write_csv(tmp_path)


def test_profiles_and_seeds_can_be_chosen(scenario: Path) -> None:
    results = simulate(scenario, profiles=["b"], seeds="7,9")
    assert [(run.profile, run.seed) for run in results.runs] == [("b", 7), ("b", 9)]
    with pytest.raises(ScenarioError, match='there is no profile "c"; choose from a, b'):
        simulate(scenario, profiles=["c"])
    with pytest.raises(ScenarioError, match="seeds: "):
        simulate(scenario, seeds="x")


def test_a_wrong_profile_is_told_at_its_place_before_anything_runs(scenario: Path) -> None:
    scenario.write_text(
        SMALL + "profiles:\n- name: a\n  profile:\n    plugins: {score: {enabled: [{name: Nonsense}]}}\n"
    )
    with pytest.raises(ScenarioError, match=r"scenario\.yaml:13:\d+: profiles\[0\]\.profile\.plugins\.score.*Nonsense"):
        simulate(scenario)


def test_a_scenario_can_be_made_in_python() -> None:
    pods = Generated(
        count=50,
        interval=Distribution(exponential=1.0),
        lifetime=60,
        shapes=[PodShape(requests={"cpu": "1"})],
    )
    scenario = Scenario(
        nodes=NodeGroup(count=3, allocatable={"cpu": 4}),
        workload=PodSource(generate=pods),
        profiles=[Contender(name="default")],
    )
    results = simulate(scenario, seeds=[1, 2])
    assert results.columns["ended"].dtype == np.int64
    assert results["ended"][-1] == 50


def test_parquet_says_the_same_as_csv(scenario: Path, tmp_path: Path) -> None:
    results = simulate(scenario, profiles=["a"], seeds=1)
    if not has_parquet():
        with pytest.raises(ScenarioError, match=r"install podium\[parquet\]"):
            results.write_parquet(tmp_path)
        return
    from importlib import import_module

    parquet = import_module("pyarrow.parquet")
    table = parquet.read_table(results.write_parquet(tmp_path)).to_pydict()
    assert table["placed"] == results["placed"].tolist()
    assert table["profile"] == ["a"] * len(results)


def test_the_summary_has_means_and_intervals(scenario: Path) -> None:
    rows = summarise(simulate(scenario))
    assert [row.profile for row in rows] == ["a", "b"]
    placed = rows[0].figures["placed"]
    assert (placed.mean, placed.deviation, placed.seeds) == (60.0, 0.0, 2)
    assert math.isnan(estimate([1.0]).margin)
    assert estimate([1.0, 3.0]).margin == pytest.approx(12.706)
