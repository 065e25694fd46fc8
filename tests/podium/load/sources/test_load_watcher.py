"""load-watcher's answers."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from podium.load.series import Series
from podium.load.settings import SourceSettings
from podium.load.sources.load_watcher import LoadWatcher
from podium.load.sources.matching import NodeIndex
from podium.load.sources.sample import Measured, SourceError
from tests.podium.load.sources.stand_in import node, stand_in, watched

NODES = NodeIndex([node("a", "10.0.0.1"), node("b", "10.0.0.2")])


def ask(body: Any, *queries: str, status: int = 200) -> dict[str, Measured]:
    async def main() -> dict[str, Measured]:
        async with stand_in() as server:
            server.says(body, status)
            watcher = LoadWatcher(SourceSettings(kind="load-watcher", address=server.url))
            try:
                wanted = [
                    Series(source=SourceSettings(kind="load-watcher", address=server.url), query=each)
                    for each in queries
                ]
                answer = await watcher.ask(wanted, NODES, 5.0)
            finally:
                await watcher.close()
            assert [(each.method, each.path) for each in server.requests] == [("GET", "/watcher")]
            return {series.query: each for series, each in answer.items() if isinstance(each, Measured)}

    return asyncio.run(main())


def test_all_series_come_from_one_request_and_are_as_old_as_the_window() -> None:
    body = watched({"a": [("CPU", "AVG", 37.5), ("CPU", "STD", 4.1)], "b": [("CPU", "AVG", 0)]}, end=1000)
    answer = ask(body, "CPU/AVG", "CPU/STD", "Memory/AVG")
    assert {query: each.values for query, each in answer.items()} == {
        "CPU/AVG": {"a": 37.5, "b": 0.0},
        "CPU/STD": {"a": 4.1},
        "Memory/AVG": {},
    }
    assert {each.measured_at for each in answer.values()} == {1000.0}


def test_a_metric_may_be_asked_for_by_its_name() -> None:
    body = watched({"a": [("Bandwidth", "AVG", 1.0), ("Bandwidth", "AVG", 2.0)]})
    metrics = body["data"]["NodeMetricsMap"]["a"]["metrics"]
    metrics[0]["name"], metrics[1]["name"] = "in", "out"
    answer = ask(body, "Bandwidth/AVG/in", "Bandwidth/AVG/out", "Bandwidth/AVG")
    assert [each.values["a"] for each in answer.values()] == [1.0, 2.0, 2.0]


def test_nodes_are_found_by_address_too_and_strangers_are_left_out() -> None:
    answer = ask(watched({"10.0.0.2": [("CPU", "AVG", 1)], "gone": [("CPU", "AVG", 2)]}), "CPU/AVG")
    assert answer["CPU/AVG"].values == {"b": 1.0}
    assert answer["CPU/AVG"].unmatched == 1


@pytest.mark.parametrize(
    "node_metrics",
    [{}, {"metrics": None}, {"metrics": []}, {"metrics": [{"type": "CPU", "operator": "AVG"}]}, 7, {"metrics": [7]}],
)
def test_a_node_without_metrics_has_no_value(node_metrics: Any) -> None:
    body = watched({"b": [("CPU", "AVG", 3)]})
    body["data"]["NodeMetricsMap"]["a"] = node_metrics
    assert ask(body, "CPU/AVG")["CPU/AVG"].values == {"b": 3.0}


def test_without_a_window_the_time_of_the_answer_counts_and_without_that_the_time_of_asking() -> None:
    body = watched({"a": [("CPU", "AVG", 1)]}, end=1000)
    del body["window"]
    assert ask(body, "CPU/AVG")["CPU/AVG"].measured_at == 1005.0
    del body["timestamp"]
    assert ask(body, "CPU/AVG")["CPU/AVG"].measured_at == 5.0


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (500, "", "it has no measurements yet"),
        (404, "", "is there a load-watcher"),
        (503, "", "answered HTTP 503"),
        (200, "[]", "something else than load-watcher's JSON"),
        (200, "{", "something else than load-watcher's JSON"),
    ],
)
def test_an_answer_of_no_use_is_one_sentence(status: int, body: Any, said: str) -> None:
    with pytest.raises(SourceError, match=said):
        ask(body, "CPU/AVG", status=status)


def test_an_answer_without_nodes_says_nothing_about_any() -> None:
    assert ask({"data": {"NodeMetricsMap": None}}, "CPU/AVG")["CPU/AVG"].values == {}
