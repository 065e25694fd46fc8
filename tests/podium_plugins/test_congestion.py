"""Congestion: the table of annotations and points, both forms, and bad settings."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.config.field import FieldPath
from podium.framework import PluginError
from podium_plugins.congestion import Congestion, CongestionArgs
from tests.podium.framework.runtimes import make_runtime
from tests.podium.plugins.ask import raw_scores
from tools.kit.builders import make_cluster, make_node, make_plugin, make_pod


def points(annotations: list[str | None], **args: int) -> list[int]:
    nodes = [
        make_node(f"n{i}", annotations=None if text is None else {"congestion-factor": text})
        for i, text in enumerate(annotations)
    ]
    cluster = make_cluster(nodes)
    found = raw_scores(make_plugin(Congestion, cluster, **args), make_pod(), cluster)
    assert all(score % 10 == 0 for score in found.values())
    return [found[node.name] // 10 for node in nodes]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, 10),
        ("", 10),
        ("0", 10),
        ("5", 10),
        ("14", 9),
        ("15", 9),
        ("45", 6),
        ("55", 5),
        ("95", 1),
        ("96", 0),
        ("100", 0),
        ("250", 0),
        ("99999999999999999999999", 0),
        ("-3", 10),
        ("5.5", 10),
        ("abc", 10),
        ("NaN", 10),
        (" 7", 10),
        ("+7", 9),
        ("07", 9),
    ],
)
def test_points_by_annotation(text: str | None, expected: int) -> None:
    assert points([text]) == [expected]


@pytest.mark.parametrize(("text", "expected"), [("3", 7), ("5", 5), ("7", 3), ("10", 0), ("12", 0)])
def test_points_where_ten_is_the_most(text: str, expected: int) -> None:
    assert points([text], factorMax=10) == [expected]


def test_each_node_by_its_own_annotation() -> None:
    assert points(["20", None, "75"]) == [8, 10, 3]


@given(st.lists(st.none() | st.text(max_size=4) | st.integers(-5, 300).map(str), min_size=1, max_size=8))
def test_points_stay_within_their_scale_whatever_is_written(annotations: list[str | None]) -> None:
    assert all(0 <= each <= 10 for each in points(annotations))


def test_a_node_that_changes_is_read_anew() -> None:
    cluster = make_cluster([make_node("a"), make_node("b", annotations={"congestion-factor": "50"})])
    plugin = make_plugin(Congestion, cluster)
    assert raw_scores(plugin, make_pod(), cluster) == {"a": 100, "b": 50}
    cluster.set_node(make_node("a", annotations={"congestion-factor": "100"}))
    assert raw_scores(plugin, make_pod(), cluster) == {"a": 0, "b": 50}


def test_the_most_comes_from_the_environment_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONGESTION_FACTOR_MAX", "10")
    assert points(["3"]) == [7]
    assert points(["3"], factorMax=100) == [10]


@pytest.mark.parametrize("text", ["0", "-1", "ten"])
def test_a_bad_variable_stops_the_start(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONGESTION_FACTOR_MAX", text)
    with pytest.raises(
        PluginError, match='initializing plugin "Congestion": environment variable CONGESTION_FACTOR_MAX'
    ):
        make_runtime(make_cluster([]), "Congestion")


def test_the_most_is_at_least_one() -> None:
    args = msgspec.convert({"factorMax": 0}, CongestionArgs)
    (error,) = args.validate(FieldPath())
    assert str(error) == "factorMax: Invalid value: 0: must be at least 1"
