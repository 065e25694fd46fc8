"""What pods use is measured by node, and reaches the plugins that follow it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from podium.cluster import Cluster
from podium.load.readings import GivenLoad
from podium.load.series import Series
from podium.load.settings import SourceSettings
from podium_lab.simulator.nodes import plain_node
from podium_lab.simulator.pods import PodTemplate, plain_spec
from podium_lab.simulator.scenario import UsageModel
from podium_lab.simulator.usage import UsageMeter, meaning, traits_sampler
from tests.podium_lab.simulator.scenarios import SMALL, course, run_one

PROMETHEUS = SourceSettings(address="http://prometheus:9090")
CPU = Series(source=PROMETHEUS, query="100 * avg_over_time(instance:node_cpu:ratio[15m])")
STEADY = (0.5, 0.0, 0.0, 0.0, 1000.0)
"""Half of the request, no swing."""


def metered() -> tuple[UsageMeter, GivenLoad, Cluster]:
    cluster, load = Cluster(), GivenLoad()
    for name in ("a", "b"):
        cluster.set_node(plain_node(name, {"cpu": 4, "memory": "8Gi"}))
    return UsageMeter(UsageModel(), cluster, load, None), load, cluster


def test_use_adds_up_by_node() -> None:
    meter, load, _cluster = metered()
    readings = load.follow(CPU)
    template = PodTemplate(plain_spec({"cpu": 2, "memory": "1Gi"}))
    for number in range(3):
        meter.pod_added(f"pod-{number}", "a", template, STEADY)
    meter.measure(60.0, 60.0)
    assert meter.utilisation.tolist() == [0.75, 0.0]
    assert readings.values == {"a": 75.0, "b": 0.0}
    meter.pod_removed("pod-1")
    meter.measure(120.0, 120.0)
    assert meter.utilisation.tolist() == [0.5, 0.0]
    assert readings.values["a"] == pytest.approx(62.5)


def test_slots_are_used_again() -> None:
    meter, _load, _cluster = metered()
    template = PodTemplate(plain_spec({"cpu": 1}))
    for number in range(1000):
        meter.pod_added(f"pod-{number}", "b", template, STEADY)
        if number >= 10:
            meter.pod_removed(f"pod-{number - 10}")
    assert len(meter._rows) == 64
    meter.measure(60.0, 60.0)
    assert meter.utilisation.tolist() == [0.0, 10 * 0.5 / 4]


def test_a_node_above_the_limit_counts_as_overloaded() -> None:
    meter, _load, _cluster = metered()
    meter.pod_added("pod", "a", PodTemplate(plain_spec({"cpu": 4})), (1.0, 0.0, 0.0, 0.0, 0.0))
    meter.measure(60.0, 60.0)
    meter.measure(120.0, 120.0)
    assert meter.overloaded_minutes == 2.0


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("CPU/AVG", (0, "AVG")),
        ("CPU/Latest", (0, "Latest")),
        ("Memory/STD", (1, "STD")),
        ("100 * stddev_over_time(instance:node_cpu:ratio[15m])", (0, "STD")),
        ("100 * avg_over_time(instance:node_memory_utilisation:ratio[15m])", (1, "AVG")),
        ('sum without (device) (rate(node_network_receive_bytes_total{device="eth0"}[5m]))', (2, "AVG")),
        ("my_own_metric", None),
    ],
)
def test_queries_are_understood(query: str, expected: tuple[int, str] | None) -> None:
    assert meaning(Series(source=PROMETHEUS, query=query)) == expected


def test_traits_are_drawn_in_the_order_pods_arrive() -> None:
    first, again = traits_sampler(UsageModel(), 3), traits_sampler(UsageModel(), 3)
    assert [first() for _ in range(5)] == [again() for _ in range(5)]
    assert len(first()) == len((*STEADY, 0.0))


TARGET = """
usage: {}
profiles:
- name: packing
  profile:
    plugins:
      score:
        enabled: [{name: TargetLoadPacking, weight: 50}]
        disabled: [{name: NodeResourcesFit}, {name: NodeResourcesBalancedAllocation}]
- name: default
"""


def test_a_plugin_that_follows_load_decides_by_it() -> None:
    packing, default = (run_one(SMALL + TARGET, profile=which) for which in (0, 1))
    spread = [np.nanmean(course(run, "cpu_utilisation_sd_pct")) for run in (packing, default)]
    assert spread[0] > spread[1], "packing by measured load leaves nodes less even"


def test_annotations_are_written_where_a_plugin_reads_them() -> None:
    text = (
        SMALL
        + "usage: {}\nprofiles:\n- name: safe\n  profile: {plugins: {multiPoint: {enabled: [{name: SafeBalance}]}}}\n"
    )
    assert not math.isnan(course(run_one(text), "cpu_utilisation_pct")[-1])


def test_a_series_that_nothing_measures_is_noted() -> None:
    text = (
        SMALL
        + """
usage: {}
profiles:
- name: own
  profile:
    plugins: {score: {enabled: [{name: PrometheusScore}]}}
    pluginConfig:
    - {name: PrometheusScore, args: {query: my_own_metric, source: {address: "http://p:9090"}}}
"""
    )
    assert any("nothing measures my_own_metric" in note for note in run_one(text).notes)
