"""Measured load through the API server: metrics-server and annotations."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from podium.load.series import Series
from podium.load.settings import SourceSettings
from podium.load.sources.kubernetes import NODE_METRICS, Annotations, MetricsServer
from podium.load.sources.matching import NodeIndex
from podium.load.sources.sample import Measured, SourceError
from tests.podium.load.sources.stand_in import node

METRICS = SourceSettings(kind="metrics-server")
NOTED = SourceSettings(kind="annotations")


class Api:
    """What an API server would answer to the one request there is."""

    def __init__(self, *items: Any, failure: Exception | None = None, body: bytes | None = None) -> None:
        self._body = json.dumps({"kind": "NodeMetricsList", "items": items}).encode() if body is None else body
        self._failure = failure

    async def get(self, path: str, *, timeout: float | None = None) -> bytes:
        assert (path, timeout) == (NODE_METRICS, 10.0)
        if self._failure is not None:
            raise self._failure
        return self._body


def used(name: str, cpu: str, memory: str, timestamp: str = "1970-01-01T00:16:40Z") -> dict[str, Any]:
    return {
        "metadata": {"name": name},
        "timestamp": timestamp,
        "window": "10s",
        "usage": {"cpu": cpu, "memory": memory},
    }


def ask(api: Api | None, nodes: NodeIndex, *queries: str) -> dict[str, Measured]:
    wanted = [Series(source=METRICS, query=query) for query in queries]
    answer = asyncio.run(MetricsServer(METRICS, api).ask(wanted, nodes, 2000.0))
    return {series.query: each for series, each in answer.items() if isinstance(each, Measured)}


def test_use_is_told_in_percent_of_the_capacity() -> None:
    nodes = NodeIndex([node("a", cpu="4", memory="8Gi"), node("b", cpu="500m", memory="1Gi")])
    api = Api(used("a", "1500m", "2Gi"), used("b", "250000000n", "1048576Ki"))
    answer = ask(api, nodes, "CPU/Latest", "Memory/Latest")
    assert answer["CPU/Latest"].values == {"a": 37.5, "b": 50.0}
    assert answer["Memory/Latest"].values == {"a": 25.0, "b": 100.0}


def test_each_node_has_the_time_at_which_it_was_measured() -> None:
    nodes = NodeIndex([node("a"), node("b"), node("c")])
    api = Api(used("a", "1", "1"), used("b", "1", "1", "1970-01-01T00:25:00Z"), used("c", "1", "1", ""))
    measured = ask(api, nodes, "CPU/Latest")["CPU/Latest"]
    assert measured.times == {"a": 1000.0, "b": 1500.0, "c": 2000.0}
    assert measured.measured_at == 2000.0


def test_the_newest_measurement_is_the_time_of_all() -> None:
    nodes = NodeIndex([node("a"), node("b")])
    api = Api(used("a", "1", "1"), used("b", "1", "1", "1970-01-01T00:25:00Z"))
    assert ask(api, nodes, "CPU/Latest")["CPU/Latest"].measured_at == 1500.0
    assert ask(Api(), nodes, "CPU/Latest")["CPU/Latest"].measured_at == 2000.0


@pytest.mark.parametrize("query", ["CPU/AVG", "CPU/STD", "Memory/STD", "Energy/Latest", "CPU", ""])
def test_what_metrics_server_does_not_have_stays_empty(query: str) -> None:
    assert ask(Api(used("a", "1", "1")), NodeIndex([node("a")]), query)[query].values == {}


@pytest.mark.parametrize(
    "item",
    [
        used("gone", "1", "1"),
        used("a", "what", "1"),
        used("a", "1", "1", "yesterday"),
        {"metadata": {"name": "a"}},
        {},
        7,
        used("nothing", "1", "1"),
    ],
)
def test_what_cannot_be_read_or_has_no_node_is_left_out(item: Any) -> None:
    nodes = NodeIndex([node("a"), node("b"), node("nothing", cpu="0")])
    assert ask(Api(item, used("b", "1", "1")), nodes, "CPU/Latest")["CPU/Latest"].values == {"b": 25.0}


def test_a_metrics_server_that_does_not_answer_is_told() -> None:
    with pytest.raises(SourceError, match=r"does not answer \(refused\)"):
        ask(Api(failure=OSError("refused")), NodeIndex(), "CPU/Latest")
    with pytest.raises(SourceError, match="something else"):
        ask(Api(body=b"<html>"), NodeIndex(), "CPU/Latest")
    with pytest.raises(SourceError, match="there is none"):
        ask(None, NodeIndex(), "CPU/Latest")


@pytest.mark.parametrize(
    ("text", "value", "time"),
    [
        ("37.5", 37.5, None),
        (" 2e2 ", 200.0, None),
        ("-1", -1.0, None),
        ("37.5,1970-01-01T00:16:40Z", 37.5, 1000.0),
        ("37.5, 1970-01-01T01:16:40+01:00", 37.5, 1000.0),
        ("37.5,yesterday", None, None),
        ("NaN", None, None),
        ("inf", None, None),
        ("much", None, None),
        ("", None, None),
    ],
)
def test_an_annotation_is_a_number_and_maybe_its_time(text: str, value: float | None, time: float | None) -> None:
    series = Series(source=NOTED, query="load")
    nodes = NodeIndex([node("a", load=text), node("b", other="1")])
    measured = asyncio.run(Annotations().ask([series], nodes, 2000.0))[series]
    assert isinstance(measured, Measured)
    assert measured.values == ({} if value is None else {"a": value})
    assert measured.times == ({} if time is None else {"a": time})
    assert measured.measured_at == 2000.0
