"""NetworkTraffic: the tutorial's numbers, and what its original broke on."""

from typing import Any

import pytest

from podium.load.readings import GivenLoad
from podium.load.series import NodeMatch, Series
from podium.load.settings import SourceSettings
from podium_lab.online.args import OnlineScoreArgs
from podium_plugins.measured_load import MeasuredLoadArgs
from podium_plugins.network_traffic import NetworkTrafficArgs, parts_of, query_of
from tests.podium.plugins.load_scores import problems_of, scores_of

ADDRESS = "http://prometheus:9090"


def scores(traffic: dict[str, float], nodes: list[str] | None = None, **args: Any) -> list[int]:
    """The final scores of the nodes, by default of those measured."""
    given = NetworkTrafficArgs(prometheus_address=ADDRESS, **args)
    load = GivenLoad()
    match = NodeMatch(label=given.node_label)
    series = Series(
        source=SourceSettings(address=ADDRESS), query=query_of(given), match=match, combine="sum", parts=parts_of(given)
    )
    load.set(series, traffic, measured_at=1.0)
    return scores_of("NetworkTraffic", given, load, nodes or list(traffic))


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ([1_000_000, 1_200_000, 1_400_000], [29, 15, 0]),
        ([1, 15, 10, 13], [94, 0, 34, 14]),
        ([1, 15, 15, 13], [94, 0, 0, 14]),
        ([0, 0, 0], [100, 100, 100]),
        ([0.9, 0.2], [100, 100]),
        ([1e30, 1.0], [0, 100]),
        ([-5.0, 10.0], [100, 0]),
    ],
)
def test_the_busiest_node_gets_nothing_and_the_others_what_they_leave_free(
    raw: list[float], expected: list[int]
) -> None:
    assert scores({f"n{i}": value for i, value in enumerate(raw)}) == expected


@pytest.mark.parametrize(("missing", "expected"), [("neutral", 50), ("worst", 0), ("best", 100)])
def test_a_node_without_a_series_counts_as_told(missing: str, expected: int) -> None:
    assert scores({"a": 0, "b": 50, "c": 100}, ["a", "b", "c", "new"], missing=missing) == [100, 50, 0, expected]


def test_without_any_measurement_all_nodes_are_equal() -> None:
    assert scores({}, ["a", "b"]) == [100, 100]


@pytest.mark.parametrize(
    ("args", "query"),
    [
        (
            {},
            'sum without (device) (rate(node_network_receive_bytes_total{device="ens192"}[5m])'
            ' + rate(node_network_transmit_bytes_total{device="ens192"}[5m]))',
        ),
        ({"network_interface": "", "direction": "tx"}, None),
        ({"mode": "sum"}, 'sum_over_time(node_network_receive_bytes_total{device="ens192"}[5m])'),
        (
            {"device_regex": "eth.*", "node_label": "node", "direction": "rx", "time_range_in_minutes": 3},
            'sum by (node) (rate(node_network_receive_bytes_total{device=~"eth.*"}[3m]))',
        ),
        (
            {"network_interface": 'a"b\\', "direction": "rx"},
            'sum without (device) (rate(node_network_receive_bytes_total{device="a\\"b\\\\"}[5m]))',
        ),
    ],
)
def test_one_query_asks_for_all_nodes(args: dict[str, Any], query: str | None) -> None:
    expected = query or 'sum without (device) (rate(node_network_transmit_bytes_total{device="ens192"}[5m]))'
    assert query_of(NetworkTrafficArgs(**args)) == expected


@pytest.mark.parametrize(
    ("args", "field"),
    [
        ({}, "prometheusAddress"),
        ({"prometheusAddress": "localhost:9090"}, "prometheusAddress"),
        ({"source": {"address": "localhost:9090"}}, "source.address"),
        ({"prometheusAddress": ADDRESS, "source": {"maxResponseBytes": 0}}, "source.maxResponseBytes"),
        ({"prometheusAddress": ADDRESS, "timeRangeInMinutes": 0}, "timeRangeInMinutes"),
        ({"prometheusAddress": ADDRESS, "deviceRegex": "("}, "deviceRegex"),
        ({"prometheusAddress": ADDRESS, "nodeLabel": "a-b"}, "nodeLabel"),
        ({"prometheusAddress": ADDRESS, "mode": "sum", "direction": "tx"}, "mode"),
        ({"prometheusAddress": ADDRESS, "source": {"address": ADDRESS}}, "source.address"),
    ],
)
def test_arguments_that_cannot_be_meant_are_told_by_field(args: dict[str, Any], field: str) -> None:
    assert problems_of(NetworkTrafficArgs, args) == [field]


@pytest.mark.parametrize("kind", [NetworkTrafficArgs, MeasuredLoadArgs, OnlineScoreArgs])
def test_what_is_wrong_with_a_source_is_said_of_the_field_it_stands_in(kind: type) -> None:
    assert problems_of(kind, {"prometheusAddress": "localhost:9090"}) == ["prometheusAddress"]
    assert problems_of(kind, {"prometheusAddress": ADDRESS, "source": {"maxResponseBytes": 0}}) == [
        "source.maxResponseBytes"
    ]
