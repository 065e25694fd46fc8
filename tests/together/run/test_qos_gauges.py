"""Gauges of controllers on /metrics: the most urgent ones, and no more than a hundred."""

from __future__ import annotations

import json

from podium.run.metrics import Metrics
from podium_plugins.qos.page import MOST_GAUGES
from tests.podium_plugins.qos_aware.qos_worlds import QosWorld

CONTROLLERS = MOST_GAUGES + 50


def test_gauges_are_of_the_controllers_nearest_to_breaking_their_slo() -> None:
    world = QosWorld(nodes=0)
    metrics = Metrics(world.clock, now=lambda: 0.0)
    metrics.attach(world.scheduler)
    for number in range(CONTROLLERS):
        world.come(f"c{number:03}-1", "0.9")
        world.pass_time(1.0)
    text = metrics.render().decode()
    for name in ("podium_qos", "podium_qos_slo", "podium_qos_metric_seconds"):
        lines = [line for line in text.splitlines() if line.startswith(name + "{")]
        assert len(lines) == MOST_GAUGES, name
        assert 'controller="c000"' in lines[0], "the first waits longest"
        assert f'controller="c{CONTROLLERS - 1}"' not in text
    assert 'podium_qos_slo{controller="c000"} 0.9' in text


def test_the_report_counts_the_evictions_of_all_profiles() -> None:
    world = QosWorld(nodes=0, profiles=("one", "two"))
    first, second = (world.scheduler.profiles[name].plugins["QosAware"] for name in ("one", "two"))
    first.preemptions, second.preemptions = 2, 3  # type: ignore[attr-defined]
    page = first.page([second])
    assert page is not None
    assert (page.name, page.title, page.port) == ("qos", "QoS page", 10000)
    assert json.loads(page.answer("/report", {}, "*/*").body)["preemptions"] == 5
