from __future__ import annotations

from typing import Any

import msgspec
import pytest

from podium.config.field import FieldPath
from podium.load.readings import GenerationCounter, GivenLoad
from podium.load.series import Series
from podium.load.utilisation import Utilisation, UtilisationArgs
from tools.kit.builders import make_cluster, make_handle, make_node


def args(**given: Any) -> UtilisationArgs:
    return msgspec.convert(given, UtilisationArgs)


def followed(given: UtilisationArgs) -> list[str]:
    """What is asked of the source for cpu."""
    handle, load, source = make_handle(make_cluster([])), GivenLoad(), given.source()
    handle.load = load
    assert source is not None
    Utilisation(handle, source, "CPU", GenerationCounter(), deviation=True)
    return [str(series) for series in load.followed]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, ["CPU/Latest of metrics-server"]),
        ({"metricProvider": {"type": "KubernetesMetricsServer"}}, ["CPU/Latest of metrics-server"]),
        (
            {"metricProvider": {"type": "Prometheus"}},
            [
                "100 * avg_over_time(instance:node_cpu:ratio[15m]) of prometheus http://prometheus-k8s:9090",
                "100 * stddev_over_time(instance:node_cpu:ratio[15m]) of prometheus http://prometheus-k8s:9090",
            ],
        ),
        (
            {"watcherAddress": "http://w:2020", "metricProvider": {"type": "Prometheus"}},
            [f"CPU/{operator} of load-watcher http://w:2020" for operator in ("AVG", "Latest", "STD")],
        ),
    ],
)
def test_where_utilisation_comes_from(given: dict[str, Any], expected: list[str]) -> None:
    assert not list(args(**given).validate(FieldPath()))
    assert followed(args(**given)) == expected


def test_a_deviation_that_nobody_wants_is_not_asked_for() -> None:
    handle, load = make_handle(make_cluster([])), GivenLoad()
    handle.load = load
    source = args(metricProvider={"type": "Prometheus"}).source()
    assert source is not None
    Utilisation(handle, source, "CPU", GenerationCounter())
    assert [series.query for series in load.followed if isinstance(series, Series)] == [
        "100 * avg_over_time(instance:node_cpu:ratio[15m])"
    ]


def test_prometheus_is_reached_as_the_arguments_say() -> None:
    provider = {"type": "Prometheus", "address": "https://p", "token": "secret"}
    source = args(metricProvider=provider).source()
    assert source is not None
    assert (source.address, source.token, source.tls.insecure_skip_verify) == ("https://p", "secret", True)
    verified = args(metricProvider={**provider, "insecureSkipVerify": False}).source()
    assert verified is not None
    assert not verified.tls.insecure_skip_verify
    assert "secret" not in repr(args(metricProvider=provider))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"metricProvider": {"type": "SignalFx"}}, "metricProvider.type: invalid MetricProvider.Type, got SignalFx; "),
        ({"watcherAddress": ""}, "metricProvider.type: invalid MetricProvider.Type, got ; "),
        ({"watcherAddress": "w:2020"}, 'watcherAddress: Invalid value: "w:2020": must be a URL'),
        (
            {"metricProvider": {"type": "Prometheus", "address": "p"}},
            'metricProvider.address: Invalid value: "p": must',
        ),
    ],
)
def test_arguments_that_make_no_sense(given: dict[str, Any], said: str) -> None:
    (error,) = args(**given).validate(FieldPath())
    assert str(error).startswith(said)


def test_an_average_counts_before_the_latest_value() -> None:
    cluster = make_cluster([make_node(name) for name in "abc"])
    handle, load = make_handle(cluster), GivenLoad()
    handle.load = load
    source = args(watcherAddress="http://w:2020").source()
    assert source is not None
    generation = GenerationCounter()
    cpu = Utilisation(handle, source, "CPU", generation)
    average, latest = load.followed.values()
    latest.write({"a": 5.0, "b": 6.0}, 70.0)
    average.write({"a": 1.0}, 60.0)
    assert generation.count == 2
    assert cpu.mean(cluster)[:2].tolist() == [cpu.mean_on("a"), cpu.mean_on("b")] == [1.0, 6.0]
    assert cpu.mean_on("c") is None
    assert cpu.mean(cluster)[2] != cpu.mean(cluster)[2]
    assert [cpu.measured_until(name) for name in "abc"] == [60.0, 70.0, 0.0]
