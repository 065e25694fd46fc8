"""A workload has measured load to score by, and no plugin that does so is measured against nothing."""

from __future__ import annotations

from podium.config import default_config, load_config
from podium.load.series import Series
from podium.load.settings import SourceSettings
from podium.plugins import load_registry
from tools.bench.loop import START, WorkloadRun
from tools.bench.runner import _prepare
from tools.bench.steady_load import FULL, INTERVAL, SteadyLoad
from tools.bench.suite import by_name

WITH_LOAD = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - plugins: {score: {enabled: [{name: PrometheusScore}]}}
    pluginConfig:
      - name: PrometheusScore
        args: {query: load, source: {address: "http://nowhere.invalid:9090"}}
"""
SERIES = Series(source=SourceSettings(address="http://nowhere.invalid:9090"), query="load")


def run(config: str | None) -> WorkloadRun:
    registry = load_registry(())
    chosen = default_config(registry) if config is None else load_config(config, "load.yaml", registry).config
    found = WorkloadRun(chosen, registry, lambda _phase: None)
    for step in _prepare(by_name("SchedulingBasic/5000Nodes_10000Pods").at(20)):
        step(found)
    return found


def test_every_node_has_a_number_for_what_a_plugin_follows() -> None:
    found = run(WITH_LOAD)
    assert list(found.load.followed) == [SERIES]
    assert set(found.load.follow(SERIES).values) == {name for name in found.scheduler.cluster.names if name}


def test_nothing_is_refreshed_that_nobody_follows() -> None:
    assert run(None).load.refreshes == 0


def test_numbers_differ_between_nodes_and_come_anew_after_the_interval() -> None:
    load, names = SteadyLoad(), [f"n{number}" for number in range(50)]
    readings = load.follow(SERIES)
    load.refresh(names, START)
    first = dict(readings.values)
    assert len(set(first.values())) > 10
    assert all(0 <= value < FULL for value in first.values())
    load.refresh(names, START + INTERVAL / 2)
    assert (readings.values, readings.generation) == (first, 1)
    load.refresh(names, START + INTERVAL)
    assert readings.generation == 2
    assert all(readings.values[name] != first[name] for name in names)
