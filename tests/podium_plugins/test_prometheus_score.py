"""PrometheusScore: an expression becomes a score."""

from typing import Any

import pytest

from podium.load.readings import GivenLoad
from podium.load.series import Series
from podium.load.settings import SourceSettings
from podium_plugins.prometheus_score import PrometheusScoreArgs
from tests.podium.plugins.load_scores import problems_of, scores_of

SOURCE = SourceSettings(address="http://prometheus:9090")
QUERY = "avg by (node) (node_load1)"


def scores(measured: dict[str, float], nodes: list[str], **args: Any) -> list[int]:
    load = GivenLoad()
    load.set(Series(source=SOURCE, query=QUERY), measured, measured_at=1.0)
    return scores_of("PrometheusScore", PrometheusScoreArgs(source=SOURCE, query=QUERY, **args), load, nodes)


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({}, [100, 67, 0, 67]),
        ({"better": "higher"}, [0, 33, 100, 33]),
        ({"scale": "rank"}, [100, 50, 0, 50]),
        ({"scale": "range", "low": 0.0, "high": 80.0}, [88, 75, 50, 75]),
        ({"missing": "worst"}, [100, 67, 0, 0]),
        ({"missing": "best"}, [100, 67, 0, 100]),
    ],
)
def test_direction_scale_and_missing_values(args: dict[str, Any], expected: list[int]) -> None:
    assert scores({"a": 10.0, "b": 20.0, "c": 40.0}, ["a", "b", "c", "unknown"], **args) == expected


def test_without_any_measurement_all_nodes_are_equal() -> None:
    assert scores({}, ["a", "b"]) == [0, 0]


@pytest.mark.parametrize(
    ("args", "fields"),
    [
        ({}, ["source.address", "query"]),
        ({"source": {"address": "http://p"}, "query": "up", "scale": "range"}, ["low", "high"]),
        ({"source": {"address": "http://p"}, "query": "up", "low": 1.0}, ["low"]),
        ({"source": {"address": "http://p"}, "query": "up", "scale": "range", "low": 2.0, "high": 1.0}, ["high"]),
        ({"source": {"kind": "metrics-server"}, "query": "up"}, ["source.kind"]),
        ({"source": {"address": "http://p"}, "query": "up", "match": {"regex": "("}}, ["match.label", "match.regex"]),
    ],
)
def test_arguments_that_cannot_be_meant_are_told_by_field(args: dict[str, Any], fields: list[str]) -> None:
    assert problems_of(PrometheusScoreArgs, args) == fields
