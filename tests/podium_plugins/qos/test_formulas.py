"""The formulas, against computed cases, a recorded run and the worked examples."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import pytest

from podium_plugins.qos.account import split_by_quorum
from podium_plugins.qos.formulas import (
    AGGREGATE,
    AVERAGE,
    CONCURRENT,
    INDEPENDENT,
    QosQuestion,
    QosSums,
    acceptable_overhead,
    availability,
    preemption_overhead,
    qos_metric,
    start_overhead,
)

HERE = Path(__file__).parent


def rows(name: str) -> list[dict[str, str]]:
    with (HERE / name).open() as file:
        return list(csv.DictReader(file))


def close(found: float, expected: str, tolerance: float = 1e-9) -> bool:
    wanted = float(expected)
    if math.isnan(wanted) or math.isinf(wanted):
        return math.isnan(found) == math.isnan(wanted) and (math.isnan(wanted) or found == wanted)
    return abs(found - wanted) <= tolerance + 1e-9 * abs(wanted)


@pytest.mark.parametrize("row", rows("golden-metric-cases.csv"), ids=lambda row: "")
def test_the_computed_cases(row: dict[str, str]) -> None:
    effective, discarded, waiting, binding = (
        int(row[f"{name}_ms"]) / 1000 for name in ("effective", "discarded", "waiting", "binding")
    )
    sums = QosSums(effective, discarded, waiting, binding, int(row["incarnations"]))
    running, pending, replicas = int(row["n_running"]), int(row["n_pending"]), int(row["replicas"])
    runs = row["pod_phase"] == "Running"
    asked = QosQuestion(row["approach"], float(row["slo"]), running, pending, replicas, runs)
    assert close(availability(sums), row["qos"])
    assert close(start_overhead(sums, compat=True), row["est_overhead_s"])
    assert close(qos_metric(sums, asked, compat=True), row["qos_metric_s"])
    assert close(preemption_overhead(sums, row["approach"]), row["preemption_overhead"])


@pytest.mark.parametrize("row", rows("golden-average-trace.csv"), ids=lambda row: row["clock"])
def test_the_recorded_run(row: dict[str, str]) -> None:
    running, waiting, binding = (float(row[f"{name}_s"]) for name in ("running", "waiting", "binding"))
    overhead = float(row["est_overhead_s"])
    incarnations = round(binding / overhead) if binding else 1
    count, pending, residual = int(row["n_running"]), int(row["n_pending"]), int(row["residual"])
    sums = QosSums(running, 0.0, waiting, binding, incarnations)
    asked = QosQuestion(AVERAGE, float(row["slo"]), count, pending, 1, pod_runs=residual < count)
    assert close(availability(sums), row["qos"], 2e-6)
    assert close(qos_metric(sums, asked, compat=True), row["qos_metric_s"], 2e-6)


def compat(approach: str, sums: QosSums, slo: float, running: int = 0, pending: int = 0, **more: bool) -> float:
    runs = more.get("runs", False)
    return qos_metric(sums, QosQuestion(approach, slo, running, pending, 4, runs), compat=True)


def test_one_slot_alone() -> None:
    assert compat(INDEPENDENT, QosSums(600, 0, 50, 0.02, 2), 0.9) == pytest.approx(16.6367, abs=1e-4)
    assert compat(INDEPENDENT, QosSums(0, 0, 12, 0, 1), 0.95) == pytest.approx(-14.4)
    assert compat(INDEPENDENT, QosSums(100, 0, 0, 0.01, 1), 1.0) == pytest.approx(-0.02)


FOUR = QosSums(2160, 0, 239.96, 0.04, 5)


@pytest.mark.parametrize(
    ("slo", "pending_pod", "running_pod"),
    [
        (0.5, math.inf, math.inf),
        (0.75, math.inf, 359.992),
        (0.8, 1199.992, 199.992),
        (0.9, 0.0, 0.0),
        (0.95, -126.3238, -126.3238),
        (1.0, -240.008, -240.008),
    ],
)
def test_four_replicas_of_which_one_waits(slo: float, pending_pod: float, running_pod: float) -> None:
    assert compat(AVERAGE, FOUR, slo, 3, 1) == pytest.approx(pending_pod, abs=1e-4)
    assert compat(AVERAGE, FOUR, slo, 3, 1, runs=True) == pytest.approx(running_pod, abs=1e-4)


def test_four_replicas_that_must_run_together() -> None:
    runs = [(10.0, 600.0)] * 3 + [(10.0, 400.0)]
    effective, discarded = split_by_quorum(runs, 4)
    assert (effective, discarded) == (1560.0, 600.0)
    sums = QosSums(effective, discarded, 239.96, 0.04, 5)
    assert availability(sums) == pytest.approx(0.65)
    found = [compat(CONCURRENT, sums, slo, 3, 1) for slo in (0.5, 0.6, 0.9)]
    assert found == pytest.approx([180.0, 50.0, -666.6747], abs=1e-4)


def test_a_pod_deleted_while_it_was_pending_takes_no_part_in_the_sweep() -> None:
    assert split_by_quorum([(2, 100), (61, 100)], 2) == (78.0, 59.0)


@pytest.mark.parametrize(
    ("effective", "discarded", "metrics", "quality", "overhead"),
    [
        (379.99, 416.99, (math.inf, -49.055, -239.05), 0.38036, 0.52324),
        (496.99, 299.99, (math.inf, math.inf, -5.05), 0.49748, 0.37644),
    ],
)
def test_a_job_whose_tasks_would_lose_their_work(
    effective: float, discarded: float, metrics: tuple[float, ...], quality: float, overhead: float
) -> None:
    sums = QosSums(effective, discarded, 202, 0.04, 4)
    found = [compat(AGGREGATE, sums, slo, 2, 0, runs=True) for slo in (0.25, 0.4, 0.5)]
    assert found == pytest.approx(metrics, abs=1e-3)
    assert availability(sums) == pytest.approx(quality, abs=1e-5)
    assert preemption_overhead(sums, AGGREGATE) == pytest.approx(overhead, abs=1e-5)


@pytest.mark.parametrize("approach", [INDEPENDENT, AVERAGE, CONCURRENT, AGGREGATE])
@pytest.mark.parametrize("effective", [0.0, 10.0])
def test_an_slo_of_nothing_promises_nothing(approach: str, effective: float) -> None:
    asked = QosQuestion(approach, 0.0, 1, 0, 1, True)
    assert qos_metric(QosSums(effective, waiting=5.0, incarnations=1), asked) == math.inf


def test_debt_is_per_replica_as_slack_is() -> None:
    sums = QosSums(0.0, 0.0, 400.0, 0.0, 4)
    assert qos_metric(sums, QosQuestion(AVERAGE, 0.5, 0, 4, 4, False)) == pytest.approx(-102.4)
    assert qos_metric(sums, QosQuestion(CONCURRENT, 0.5, 0, 4, 4, False)) == pytest.approx(-102.4)


def test_the_prior_of_the_start_overhead_weighs_as_one_start() -> None:
    assert start_overhead(QosSums(incarnations=7)) == 2.4
    assert start_overhead(QosSums(binding=3.6, incarnations=7, bound=1)) == 3.0


def test_the_ceiling_of_the_overhead() -> None:
    assert acceptable_overhead(1.0, 0.05) == 0.0
