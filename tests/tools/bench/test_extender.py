"""What extenders cost kube-scheduler, measured in small."""

from __future__ import annotations

import io

import msgspec
import pytest
from rich.console import Console

from podium.extender.metrics import ExtenderMetrics
from podium.kube import Node
from tools.bench.e2e import Figures, Race, create_nodes
from tools.bench.extender import CallTimes, ExtenderFigures, InFull, annotated, calls_of, compare, percentile
from tools.bench.nothing import answer_to
from tools.bench.report import comparison_json, extender_tables
from tools.testbed import ControlPlane


def test_the_extender_that_does_nothing_lets_all_pass_and_scores_all_alike() -> None:
    body = b'{"Pod":{"metadata":{"name":"p"}},"Nodes":null,"NodeNames":["a","b"]}'
    assert answer_to(b"/nothing/filter", body) == b'{"NodeNames":["a","b"]}'
    assert answer_to(b"/nothing/prioritize", body) == b'[{"Host":"a","Score":1},{"Host":"b","Score":1}]'


def test_nodes_in_full_are_as_large_as_they_are_said_to_be() -> None:
    node = annotated(7, 10, 30_000)
    assert 29_700 <= len(node) < 30_300
    decoded = msgspec.json.decode(node, type=Node)
    assert "mean-free-cpu" in decoded.annotations
    assert len(decoded.status.images) > 100
    assert len(annotated(7, 10)) < 2_000


@pytest.mark.parametrize(
    ("buckets", "share", "seconds"),
    [
        ([(1.0, 0.0), (2.0, 10.0), (4.0, 20.0), (float("inf"), 20.0)], 0.5, 2.0),
        ([(1.0, 0.0), (2.0, 10.0), (4.0, 20.0), (float("inf"), 20.0)], 0.75, 3.0),
        ([(1.0, 100.0), (float("inf"), 100.0)], 0.99, 0.99),
        ([(1.0, 0.0), (float("inf"), 5.0)], 0.5, 1.0),
    ],
)
def test_percentiles_lie_within_their_bucket(buckets: list[tuple[float, float]], share: float, seconds: float) -> None:
    assert percentile(buckets, share) == pytest.approx(seconds)


def test_times_are_read_from_the_extenders_own_metrics() -> None:
    metrics = ExtenderMetrics(lambda: 0, lambda: True)
    for seconds in [0.0001] * 98 + [0.01] * 2:
        metrics.seconds_of("safe", "filter").record(seconds)
    [call] = calls_of(metrics.render().decode())
    assert (call.agent, call.verb, call.count) == ("safe", "filter", 100)
    assert 0.06 < call.p50_ms < 0.15
    assert 6 < call.p99_ms < 12


def a_race(scheduler: str, pods_per_s: float) -> Race:
    return Race(scheduler, pods_per_s, 2.6, 200.0, 10.0, 11.0, 1.0, 30.0, 100)


def test_the_tables_show_the_contestants_the_calls_and_the_nodes_in_full() -> None:
    speeds = {"alone": 400.0, "nothing": 350.0, "agents": 320.0, "joined": 330.0}
    found = ExtenderFigures(
        **{name: Figures(speed, 2.5, 200.0) for name, speed in speeds.items()},
        ratio=0.8,
        joined_ratio=0.825,
        nothing_ratio=0.875,
        agents_cpu_s_per_1000=0.3,
        calls=[CallTimes("safe", "filter", 5000, 0.1, 0.5)],
        in_full=InFull(5000, 150.0, 0.9, 0.5, 0.4, 700.0),
        nodes=5000,
        pods=5000,
        percentage=0,
        rounds=[a_race(name, speed) for name, speed in speeds.items()],
    )
    assert msgspec.json.decode(comparison_json(found))["ratio"] == 0.8
    console = Console(width=120, record=True, file=io.StringIO())
    for table in extender_tables(found):
        console.print(table)
    text = console.export_text()
    for words in (
        "with safe and congestion, an entry each 320 2.50 0.80×",
        "safe filter 5,000 0.100 0.500",
        "5,000 nodes in full 150 0.90 0.50 0.40 700",
    ):
        assert words in " ".join(text.split())


def test_a_small_comparison_on_the_real_components(testbed_programs: None) -> None:
    """With the audit log, which says when pods were bound."""
    with ControlPlane(audit=True) as plane:
        create_nodes(plane, [annotated(index, 20) for index in range(20)], lambda _text, _done: None)
        found = compare(plane, 20, 20, 1, 0, lambda _text, _done: None)
    assert {race.scheduler for race in found.rounds} == {"alone", "nothing", "agents", "joined"}
    assert found.ratio > 0
    counts = {(call.agent, call.verb): call.count for call in found.calls}
    assert counts["safe", "filter"] == counts["congestion", "prioritize"] == counts["safe", "prioritize"] == 20
    assert found.in_full.megabytes == pytest.approx(0.6, abs=0.1)
