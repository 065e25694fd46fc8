"""MeasuredLoad: several metrics become one score; what is not measured does not count."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podium.framework import PluginError
from podium.load.readings import GivenLoad
from podium.load.settings import SourceSettings
from podium_plugins.measured_load import USUAL, MeasuredLoad, MeasuredLoadArgs, Metric, shares
from tests.podium.framework.runtimes import make_runtime
from tests.podium.plugins.load_scores import problems_of, scores_of
from tools.kit.builders import make_cluster, make_handle

SOURCE = SourceSettings(address="http://prometheus:9090")


def points(measured: list[tuple[Metric, dict[str, float]]], nodes: str, **args: Any) -> list[int]:
    """The points of each node; a metric is measured as given."""
    load = GivenLoad()
    for metric, values in measured:
        load.set(metric.series(SOURCE), values, measured_at=1.0)
    metrics = tuple(metric for metric, _values in measured)
    found = scores_of("MeasuredLoad", MeasuredLoadArgs(source=SOURCE, metrics=metrics, **args), load, list(nodes))
    assert all(score % 10 == 0 for score in found)
    return [score // 10 for score in found]


PRESSURE = Metric(query="pressure", min=0, max=1)
TRAFFIC = Metric(query="traffic", weight=3)
FREE = Metric(query="free", direction="higher", min=0, max=100)


@pytest.mark.parametrize(
    ("measured", "expected"),
    [
        # One metric with fixed ends: 10·(1 − value), rounded, halves up.
        ([(PRESSURE, {"a": 0.0, "b": 0.25, "c": 1.0})], [10, 8, 0]),
        ([(PRESSURE, {"a": -5.0, "b": 0.75, "c": 80.0})], [10, 3, 0]),
        ([(FREE, {"a": 100.0, "b": 25.0, "c": 0.0})], [10, 3, 0]),
        # Without ends: between the lowest and the highest of all nodes; equal values in the middle.
        ([(TRAFFIC, {"a": 2e9, "b": 1e9, "c": 1.5e9})], [0, 10, 5]),
        ([(TRAFFIC, {"a": 7.0, "b": 7.0, "c": 7.0})], [5, 5, 5]),
        # Weighted: (1·1 + 3·0)/4, (1·½ + 3·1)/4, (1·0 + 3·½)/4.
        (
            [(PRESSURE, {"a": 0.0, "b": 0.5, "c": 1.0}), (TRAFFIC, {"a": 9.0, "b": 1.0, "c": 5.0})],
            [3, 9, 4],
        ),
        # A metric that a node lacks is dropped from both sums: b by pressure alone.
        ([(PRESSURE, {"a": 0.0, "b": 0.5, "c": 1.0}), (TRAFFIC, {"a": 9.0, "c": 5.0})], [3, 5, 8]),
        # A metric that nobody has counts nowhere.
        ([(PRESSURE, {"a": 0.0, "b": 0.5, "c": 1.0}), (TRAFFIC, {})], [10, 5, 0]),
        ([(PRESSURE, {}), (TRAFFIC, {})], [5, 5, 5]),
    ],
)
def test_points(measured: list[tuple[Metric, dict[str, float]]], expected: list[int]) -> None:
    assert points(measured, "abc") == expected


@pytest.mark.parametrize(("missing", "expected"), [("neutral", 5), ("worst", 0), ("best", 10)])
def test_a_node_of_which_nothing_is_known(missing: str, expected: int) -> None:
    measured = {"a": 0.0, "b": 0.5, "c": 0.9}
    assert points([(PRESSURE, measured)], "abcd", missing=missing) == [10, 5, 1, expected]


numbers = st.dictionaries(st.sampled_from("abcde"), st.floats(allow_nan=False, allow_infinity=False))


@given(numbers, st.sampled_from(["lower", "higher"]), st.none() | st.just(0.0), st.none() | st.just(10.0))
def test_shares_lie_between_nothing_and_one_and_keep_the_order(
    values: dict[str, float], direction: str, low: float | None, high: float | None
) -> None:
    metric = msgspec.convert({"query": "x", "direction": direction, "min": low, "max": high}, Metric)
    found = shares(values, metric)
    assert found.keys() == values.keys()
    assert all(0 <= share <= 1 for share in found.values())
    ordered = sorted(values, key=values.__getitem__, reverse=direction == "lower")
    assert [found[name] for name in ordered] == sorted(found.values())


def test_the_usual_metrics_speak_of_all_nodes_at_once() -> None:
    assert [metric.query for metric in USUAL] == [
        "rate(node_pressure_cpu_waiting_seconds_total[5m])",
        "rate(node_pressure_memory_waiting_seconds_total[5m])",
        "sum by (instance, node) (rate(container_cpu_cfs_throttled_periods_total[5m]))"
        " / sum by (instance, node) (rate(container_cpu_cfs_periods_total[5m]))",
        "sum by (instance, node) (rate(node_perf_cache_misses_total[5m]))"
        " / sum by (instance, node) (rate(node_perf_cache_refs_total[5m]))",
        "sum without (device) ("
        'rate(node_network_receive_bytes_total{device!~"lo|veth.*|cali.*|cni.*|docker.*|flannel.*"}[5m]) + '
        'rate(node_network_transmit_bytes_total{device!~"lo|veth.*|cali.*|cni.*|docker.*|flannel.*"}[5m]))',
        "sum without (device) (rate(node_disk_read_time_seconds_total[5m])"
        " + rate(node_disk_write_time_seconds_total[5m]))"
        " / sum without (device) (rate(node_disk_reads_completed_total[5m])"
        " + rate(node_disk_writes_completed_total[5m]))",
    ]


def test_it_is_ready_when_any_metric_was_answered_even_with_nothing() -> None:
    load = GivenLoad()
    args = MeasuredLoadArgs(source=SOURCE, metrics=(PRESSURE, TRAFFIC))
    handle = make_handle(make_cluster([]))
    handle.load = load
    plugin = MeasuredLoad(args, handle)
    assert plugin.unready == "nothing has been measured yet: it has not been asked yet"
    load.follow(TRAFFIC.series(SOURCE)).problem = "prometheus is away"
    assert plugin.unready == "nothing has been measured yet: prometheus is away"
    load.set(PRESSURE.series(SOURCE), {}, measured_at=5.0)
    assert plugin.unready is None


def test_what_is_measured_of_pods_is_looked_up_by_pod() -> None:
    series = Metric(query="misses", per_pod="sum").series(SOURCE)
    assert (series.match.by, series.combine) == ("pod", "sum")


def test_the_address_comes_from_the_environment_too(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PluginError, match='initializing plugin "MeasuredLoad": set prometheusAddress'):
        make_runtime(make_cluster([]), "MeasuredLoad")
    monkeypatch.setenv("PROMETHEUS_ADDRESS", "prometheus:9090")
    with pytest.raises(PluginError, match="environment variable PROMETHEUS_ADDRESS: Invalid value"):
        make_runtime(make_cluster([]), "MeasuredLoad")
    monkeypatch.setenv("PROMETHEUS_ADDRESS", "http://prometheus:9090")
    make_runtime(make_cluster([]), "MeasuredLoad")


@pytest.mark.parametrize(
    ("args", "fields"),
    [
        ({}, []),
        ({"prometheusAddress": "http://p", "source": {"address": "http://q"}}, ["source.address"]),
        ({"prometheusAddress": "p"}, ["prometheusAddress"]),
        ({"prometheusAddress": "http://p", "source": {"maxResponseBytes": 0}}, ["source.maxResponseBytes"]),
        ({"source": {"kind": "metrics-server"}}, ["source.kind"]),
        ({"metrics": []}, ["metrics"]),
        ({"metrics": [{"query": " ", "weight": 0}]}, ["metrics[0].query", "metrics[0].weight"]),
        ({"metrics": [{"query": "up"}, {"query": "x", "min": 2, "max": 1}]}, ["metrics[1].max"]),
        ({"metrics": [{"query": "x", "perPod": "sum", "nodeLabel": "node"}]}, ["metrics[0].nodeLabel"]),
    ],
)
def test_arguments_that_cannot_be_meant_are_told_by_field(args: dict[str, Any], fields: list[str]) -> None:
    assert problems_of(MeasuredLoadArgs, args) == fields
