"""The metrics log of the original, and what a run comes to from it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from podium.cli import app
from podium_plugins.qos.metrics_log import MetricsLogError, parse_release, read_log, report_of_log

LINE = (
    "{at},{pod}_default,{controller},{slo:.6f},{slot},{approach},{created},{w},{b},{r},{ok},{qos:.6f},{metric},{sums}"
)


def line(controller: str, approach: str, at: int, **more: object) -> str:
    given = {"pod": "p", "slo": 0.5, "slot": 0, "created": 0, "w": 0, "b": 0, "r": 0, "ok": "false", "qos": 0.0}
    given |= {"metric": "-1.500000", "sums": "0,0,0,0"}
    return LINE.format(controller=controller, approach=approach, at=at, **{**given, **more})


@pytest.mark.parametrize(
    ("approach", "lines", "availability"),
    [
        ("average", [(10, 0, 0.1), (30, 1, 0.7), (20, 0, 0.3)], 0.7),
        ("concurrent", [(30, 0, 0.4), (30, 1, 0.9)], 0.4),
        ("independent", [(10, 0, 0.1), (20, 0, 0.8), (15, 1, 0.6)], 0.6),
    ],
)
def test_what_a_controller_got_in_the_end(
    approach: str, lines: list[tuple[int, int, float]], availability: float
) -> None:
    found = report_of_log(read_log(line("web", approach, at, slot=slot, qos=qos, slo=1.0) for at, slot, qos in lines))
    assert found.mean_deficit == pytest.approx(1 - availability)
    assert (found.preemptions, found.makespan_s) == (len(lines), max(at for at, *_ in lines))


def test_work_in_progress_counts_for_a_job() -> None:
    sums = "202000,40,379990,416990"
    found = report_of_log(read_log([line("job", "aggregate", 500, r=316990, sums=sums, slo=1.0)]))
    assert 1 - found.mean_deficit == pytest.approx(696.98 / 999.02)
    assert found.wasted_s == pytest.approx(100 + 0.04)


def test_metrics_may_be_no_finite_numbers() -> None:
    assert parse_release(line("web", "average", 1, metric="NaN")).metric != 0
    assert parse_release(line("web", "average", 1, metric="+Inf")).metric == float("inf")


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ("1,2,3", "line 2: 3 fields"),
        (line("web", "sometimes", 1), 'line 2: field 6: "sometimes"'),
        (line("web", "average", 1, ok="yes"), "line 2: field 11"),
        (line("web", "average", 1).replace("0.500000", "half"), 'line 2: field 4: "half" is no number'),
        (line("web", "average", 1).replace("0.500000", "NaN"), "line 2: field 4"),
        (line("web", "average", 1, slot=-1), "line 2: field 5"),
    ],
)
def test_what_cannot_be_read_is_named(wrong: str, why: str) -> None:
    with pytest.raises(MetricsLogError, match=why.replace("(", r"\(")):
        list(read_log([line("web", "average", 1), wrong]))


def test_podium_qos_report_reads_a_log(tmp_path: Path) -> None:
    log = tmp_path / "metrics.log"
    log.write_text(line("web", "average", 30, qos=0.25) + "\n")
    answer = CliRunner().invoke(app, ["qos", "report", "--log", str(log), "-o", "json"])
    assert json.loads(answer.stdout)["mean_deficit"] == 0.25
    log.write_text("nothing\n")
    answer = CliRunner().invoke(app, ["qos", "report", "--log", str(log)])
    assert answer.exit_code != 0
