"""NodeMetadata: scores by the formula, values that cannot be read, and arguments that are refused.

Go layouts: what they read, and what they do not.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.cluster import Cluster, Nodes
from podium.config.field import FieldPath
from podium.framework import Cycle
from podium.kube import Node
from podium_plugins.node_metadata import NO_VALUE, LayoutError, NodeMetadata, NodeMetadataArgs, reader_of
from tests.podium.plugins.ask import raw_scores
from tools.kit.builders import make_cluster, make_node, make_plugin, make_pod

KEY = "example.com/rank"


def node(name: str, value: str | None, source: str) -> Node:
    written = {} if value is None else {KEY: value}
    return make_node(name, labels=written) if source == "Label" else make_node(name, annotations=written)


def args(strategy: str = "Highest", source: str = "Label", **rest: Any) -> dict[str, Any]:
    kind = "Number" if strategy in ("Highest", "Lowest") else "Timestamp"
    given = {"metadataKey": KEY, "metadataSource": source, "metadataType": kind, "scoringStrategy": strategy}
    return {**given, **rest}


def points(values: list[str | None], strategy: str, source: str = "Label", **rest: Any) -> list[int]:
    cluster = make_cluster(node(f"n{number}", value, source) for number, value in enumerate(values))
    plugin = make_plugin(NodeMetadata, cluster, **args(strategy, source, **rest))
    raw = raw_scores(plugin, make_pod(), cluster)  # both forms, on every choice of rows
    return normalised(plugin, cluster, list(raw.values()))


def normalised(plugin: NodeMetadata, cluster: Cluster, raw: list[int]) -> list[int]:
    nodes = Nodes(cluster, cluster.order.rows)
    scores = np.array(raw, dtype=np.int64)
    found: list[int] = plugin.normalize(Cycle(make_pod(), cluster), nodes, scores).tolist()
    return found


CASES: list[tuple[str, list[str | None], str, list[int]]] = [
    ("the example of the specification", ["100", "50", "75", None], "Highest", [100, 1, 50, 0]),
    ("lowest", ["100", "50", "75", None], "Lowest", [1, 100, 50, 0]),
    ("all equal", ["7", "7", None], "Highest", [1, 1, 0]),
    ("one value", ["7", None], "Lowest", [1, 0]),
    ("no value", [None, "fast"], "Highest", [0, 0]),
    ("fractions are cut off", ["2.9", "2.1", "3"], "Highest", [1, 1, 100]),
    ("below zero, too", ["-2.9", "-2.1", "-3"], "Highest", [100, 100, 1]),
    ("what is no number", ["NaN", "Inf", "1e400", "0x10", "", "4", "2"], "Highest", [0, 0, 0, 0, 0, 100, 1]),
    ("as large as can be", ["4e18", "-4e18", "0"], "Highest", [100, 1, 50]),
    ("larger than that", ["1e19", "3", "1"], "Highest", [0, 100, 1]),
    ("newest", ["2026-01-03T00:00:00Z", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"], "Newest", [100, 1, 50]),
    ("oldest", ["2026-01-03T00:00:00Z", "2026-01-01T00:00:00Z", "soon"], "Oldest", [1, 100, 0]),
    ("in zones", ["2026-01-01T02:00:00+02:00", "2026-01-01T00:00:00Z"], "Newest", [1, 1]),
    ("in the future", ["2199-01-01T00:00:00Z", "2026-01-01T00:00:00Z"], "Newest", [100, 1]),
]


@pytest.mark.parametrize("source", ["Label", "Annotation"])
@pytest.mark.parametrize(
    ("values", "strategy", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_scores(values: list[str | None], strategy: str, expected: list[int], source: str) -> None:
    assert points(values, strategy, source) == expected


def test_times_are_read_by_the_layout() -> None:
    assert points(["02.01.2026", "01.01.2026", "2026-01-03T00:00:00Z"], "Newest", timestampFormat="02.01.2006") == [
        100,
        1,
        0,
    ]


def test_scores_follow_the_node() -> None:
    cluster = make_cluster([node("n0", "1", "Label"), node("n1", "2", "Label")])
    plugin = make_plugin(NodeMetadata, cluster, **args())
    assert raw_scores(plugin, make_pod(), cluster) == {"n0": 1, "n1": 2}
    cluster.set_node(node("n0", "3", "Label"))
    cluster.set_node(node("n1", None, "Label"))
    assert raw_scores(plugin, make_pod(), cluster) == {"n0": 3, "n1": NO_VALUE}


WRONG: list[tuple[dict[str, Any], list[str]]] = [
    (args(metadataKey=""), ["metadataKey: Required value: metadataKey cannot be empty"]),
    (
        args(source="Taint"),
        ['metadataSource: Invalid value: "Taint": metadataSource must be either "Label" or "Annotation"'],
    ),
    (
        args(metadataType="Text"),
        ['metadataType: Invalid value: "Text": metadataType must be either "Number" or "Timestamp"'],
    ),
    (
        args("Best", metadataType="Number"),
        [
            'scoringStrategy: Invalid value: "Best": '
            'scoringStrategy must be one of "Highest", "Lowest", "Newest", or "Oldest"'
        ],
    ),
    (
        args("Newest", metadataType="Number"),
        [
            'scoringStrategy: Invalid value: "Newest": '
            'scoringStrategy "Newest" and "Oldest" are only valid for metadataType "Timestamp"'
        ],
    ),
    (
        args("Lowest", metadataType="Timestamp"),
        [
            'scoringStrategy: Invalid value: "Lowest": '
            'scoringStrategy "Highest" and "Lowest" are only valid for metadataType "Number"'
        ],
    ),
    (
        args("Newest", timestampFormat="yyyy"),
        [
            'timestampFormat: Invalid value: "yyyy": it shows no part of the reference time; '
            'write it like "2006-01-02T15:04:05Z07:00"'
        ],
    ),
    ({}, ["metadataKey", "metadataSource", "metadataType", "scoringStrategy"]),
    (args(), []),
    (args("Oldest"), []),
]


@pytest.mark.parametrize(("given_args", "errors"), WRONG)
def test_arguments_that_are_wrong_are_refused(given_args: dict[str, Any], errors: list[str]) -> None:
    found = [str(error) for error in msgspec.convert(given_args, NodeMetadataArgs).validate(FieldPath())]
    assert len(found) == len(errors)
    for each, expected in zip(found, errors, strict=True):
        assert each.startswith(expected)


VALUES = st.one_of(st.none(), st.integers(-(2**64), 2**64).map(str), st.floats().map(str), st.just("x"))


@given(st.lists(VALUES, min_size=1, max_size=6), st.sampled_from(["Highest", "Lowest"]))
def test_scores_are_those_of_the_formula(values: list[str | None], strategy: str) -> None:
    def read(value: str | None) -> int | None:
        try:
            number = float(value or "x")
        except ValueError:
            return None
        return math.trunc(number) if math.isfinite(number) and abs(number) < 2**62 else None

    sign = 1 if strategy == "Highest" else -1
    raw = [None if (number := read(value)) is None else sign * number for value in values]
    known = [each for each in raw if each is not None]
    low, high = min(known, default=0), max(known, default=0)
    expected = [0 if each is None else 1 if high == low else (each - low) * 99 // (high - low) + 1 for each in raw]
    assert points(values, strategy) == expected


READ = [
    ("2006-01-02T15:04:05Z07:00", "2026-08-16T09:30:00Z", "2026-08-16T09:30:00"),
    ("2006-01-02T15:04:05Z07:00", "2026-08-16T09:30:00.999+02:00", "2026-08-16T07:30:00"),
    ("2006-01-02T15:04:05.000Z0700", "2026-08-16T09:30:00.123-0130", "2026-08-16T11:00:00"),
    ("2006-01-02 15:04:05 -07", "2026-08-16 09:30:00 +01", "2026-08-16T08:30:00"),
    ("Mon, 02 Jan 2006 15:04:05 MST", "Sun, 16 Aug 2026 09:30:00 GMT", "2026-08-16T09:30:00"),
    ("Monday, 02-Jan-06 15:04:05 MST", "Sunday, 16-Aug-26 09:30:00 UTC", "2026-08-16T09:30:00"),
    ("January 2, 2006 at 3:04pm", "August 6, 2026 at 12:30am", "2026-08-06T00:30:00"),
    ("Jan _2 2006 03PM", "Aug  6 2026 12PM", "2026-08-06T12:00:00"),
    ("2006-002", "2024-366", "2024-12-31T00:00:00"),
    ("2006.__2", "2026.  9", "2026-01-09T00:00:00"),
    ("20060102150405", "20260816093000", "2026-08-16T09:30:00"),
    ("2006_01_02", "2026_08_16", "2026-08-16T00:00:00"),
    ("1/2/06", "8/16/70", "1970-08-16T00:00:00"),
    ("2006 (v1.5) 01-02", "2026 (v8.30) 12-01", None),
]


@pytest.mark.parametrize(("layout", "text", "expected"), READ)
def test_times_are_read(layout: str, text: str, expected: str | None) -> None:
    if expected is None:
        with pytest.raises(LayoutError):
            reader_of(layout)
        return
    found = reader_of(layout)(text)
    assert found == int(datetime.fromisoformat(expected).replace(tzinfo=UTC).timestamp())


NOT_READ = [
    ("2006-01-02", "2026-02-30"),
    ("2006-01-02", "2026-1-2"),
    ("2006-01-02", "2026-01-02 "),
    ("2006-01-02", "２０２６-01-02"),
    ("15:04", "24:00"),
    ("3PM", "13PM"),
    ("2006-002", "2025-366"),
    ("2006-01-02T15:04:05Z07:00", "2026-08-16T09:30:00"),
    ("2006-01-02T15:04:05-07:00", "2026-08-16T09:30:00+99:00"),
    ("Jan 2006", "Foo 2026"),
]


@pytest.mark.parametrize(("layout", "text"), NOT_READ)
def test_what_is_no_such_time_is_not_read(layout: str, text: str) -> None:
    assert reader_of(layout)(text) is None


def test_a_time_of_day_is_in_the_year_0() -> None:
    read = reader_of("15:04")
    assert (read("09:30") or 0) - (read("09:00") or 0) == 1800
    assert (read("09:30") or 0) < 0


@pytest.mark.parametrize("layout", ["", "yyyy-mm-dd", "2006 2006"])
def test_a_layout_that_reads_nothing_is_refused(layout: str) -> None:
    with pytest.raises(LayoutError):
        reader_of(layout)
