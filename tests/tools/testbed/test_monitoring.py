"""Prometheus and exporters of the test bed: what is set is scraped, and what was scraped survives a kill."""

from collections.abc import Iterator

import pytest

from tools.testbed.exporter import Exporter
from tools.testbed.monitoring import Job, NodeExporter, PrometheusServer, Target


@pytest.fixture
def exporter() -> Iterator[Exporter]:
    with Exporter() as started:
        yield started


def test_prometheus_keeps_its_data_when_it_is_killed(prometheus_programs: None, exporter: Exporter) -> None:
    exporter.set("colour", 1.5, node="a")
    with PrometheusServer([Job("given", [Target(exporter.address)], honor_labels=True)]) as prometheus:
        [(labels, value)] = prometheus.poll("colour", bool)
        assert (labels["node"], value) == ("a", 1.5)
        port, scrapes = prometheus.port, exporter.scrapes
        prometheus.kill()
        exporter.set("colour", 3.0, node="a")
        prometheus.restart()
        assert prometheus.port == port
        prometheus.poll("colour == 3", bool)
        assert exporter.scrapes > scrapes
        assert prometheus.query("min_over_time(colour[5m])")[0][1] == 1.5


def test_node_exporters_are_told_apart_by_address_and_by_label(prometheus_programs: None) -> None:
    with NodeExporter("127.0.0.21") as one, NodeExporter() as other:
        targets = [Target(one.address), Target(other.address, {"node": "n"})]
        with PrometheusServer([Job("nodes", targets)]) as prometheus:
            samples = prometheus.poll("node_load1", lambda samples: len(samples) == 2)
    assert {labels["instance"]: labels.get("node") for labels, _ in samples} == {one.address: None, other.address: "n"}


def test_a_counter_goes_on_from_where_it_is(exporter: Exporter) -> None:
    exporter.set("bytes_total", 100.0, node="a")
    exporter.grow("bytes_total", 1e9, node="a")
    first = float(exporter.text().split()[-1])
    assert first >= 100.0
    exporter.grow("bytes_total", 0.0, node="a")
    stopped = exporter.text()
    assert float(stopped.split()[-1]) >= first
    assert stopped == exporter.text()
    assert stopped.startswith('bytes_total{node="a"} ')
