from __future__ import annotations

import msgspec
import pytest
from rich.console import Console
from rich.table import Table

from tools.bench.growth import Growth, GrowthPoint
from tools.bench.report import (
    NotARunError,
    SavedGrowth,
    SavedRun,
    change_table,
    compare_growth,
    compare_runs,
    growth_table,
    load_growth,
    load_run,
    run_table,
    to_json,
)
from tools.bench.runner import Measurement, percentile


def a_measurement(**fields: object) -> Measurement:
    plain = Measurement("Case/variant", 10, 10, 20, 20, 1000.0, 100.0, 200.0, 50.0)
    return msgspec.structs.replace(plain, **fields)


def shown(table: Table) -> str:
    console = Console(width=160, no_color=True)
    with console.capture() as capture:
        console.print(table)
    return capture.get()


def test_what_was_written_can_be_read() -> None:
    run = [a_measurement()]
    assert load_run(to_json(run, None), "run.json").workloads == run


def test_the_shape_of_a_run() -> None:
    assert msgspec.json.decode(to_json([a_measurement()], None)) == {
        "workloads": [
            {
                "workload": "Case/variant",
                "nodes": 10,
                "nodes_scored": 10,
                "pods": 20,
                "scheduled": 20,
                "pods_per_s": 1000.0,
                "p50_us": 100.0,
                "p99_us": 200.0,
                "peak_mb": 50.0,
                "threshold": None,
                "ratio": None,
            }
        ]
    }


def test_the_shape_of_growth() -> None:
    growth = Growth("Case", [GrowthPoint(1000, 5.0), GrowthPoint(2000, 10.0)], 1.0)
    assert msgspec.json.decode(to_json([growth], None)) == {
        "workloads": [
            {
                "workload": "Case",
                "points": [{"nodes": 1000, "us_per_pod": 5.0}, {"nodes": 2000, "us_per_pod": 10.0}],
                "exponent": 1.0,
            }
        ]
    }
    assert load_growth(to_json([growth], []), "growth.json").workloads == [growth]


def test_a_file_that_is_no_run_is_refused() -> None:
    with pytest.raises(
        NotARunError, match=r"^old.json: not a saved run \(.*\); save one with podium bench scheduler-perf"
    ):
        load_run('{"workloads": [{}]}', "old.json")
    with pytest.raises(NotARunError, match="podium bench growth --json"):
        load_growth("[", "old.json")


def test_runs_are_compared_workload_by_workload() -> None:
    before = SavedRun([a_measurement(), a_measurement(workload="Gone/x")])
    now = SavedRun([a_measurement(workload="New/x"), a_measurement(pods_per_s=2500.0, p99_us=100.0)])
    changes = {change.what: (change.before, change.now, change.ratio) for change in compare_runs(before, now)}
    assert changes == {
        "pods_per_s": (1000.0, 2500.0, 2.5),
        "p50_us": (100.0, 100.0, 1.0),
        "p99_us": (200.0, 100.0, 0.5),
        "peak_mb": (50.0, 50.0, 1.0),
    }


@pytest.mark.parametrize("other", [{"nodes": 20}, {"pods": 40}])
def test_different_sizes_are_not_compared(other: dict[str, int]) -> None:
    assert compare_runs(SavedRun([a_measurement(**other)]), SavedRun([a_measurement()])) == []


def test_growth_is_compared_size_by_size() -> None:
    before = SavedGrowth([Growth("Case", [GrowthPoint(1000, 10.0), GrowthPoint(5000, 20.0)], 0.4)])
    now = SavedGrowth([Growth("Case", [GrowthPoint(1000, 5.0), GrowthPoint(9000, 20.0)], 0.4)])
    assert [(change.nodes, change.ratio) for change in compare_growth(before, now)] == [(1000, 0.5)]


def test_a_better_number_is_green_and_noise_has_no_colour() -> None:
    before = SavedRun([a_measurement()])
    now = SavedRun([a_measurement(pods_per_s=2000.0, p50_us=300.0, p99_us=204.0)])
    table = change_table(compare_runs(before, now))
    styles = [getattr(cell, "style", "") for cell in table.columns[-1].cells]
    assert styles == ["green", "red", "", ""]
    assert "2.00×" in shown(table)


def test_tables_show_every_number() -> None:
    text = shown(run_table([a_measurement(pods_per_s=12345.6, scheduled=19)]))
    assert "12,346" in text
    assert "19 of 20" in text
    text = shown(run_table([a_measurement(threshold=790.0, ratio=1.27), a_measurement()]))
    assert all(word in text for word in ("CI floor", "790", "1.3×"))
    text = shown(growth_table([Growth("Case", [GrowthPoint(1000, 5.04), GrowthPoint(20_000, 10.0)], 0.234)]))
    assert all(word in text for word in ("20,000 nodes", "5.0 µs", "0.23"))


@pytest.mark.parametrize(("percent", "value"), [(1, 1), (50, 50), (99, 99), (100, 100)])
def test_percentiles_are_values_that_occurred(percent: int, value: int) -> None:
    assert percentile(range(1, 101), percent) == value
    assert percentile([7], percent) == 7
    assert percentile([], percent) == 0
