"""Plugins that block are named, once and then by the minute, and cost nothing while they do not."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from podium.cluster import NodeInfo
from podium.framework import Cycle, Plugin
from podium.run import plugin_watchdog
from podium.run.plugin_watchdog import PluginWatchdog
from tests.podium.engine.schedulers import World
from tools.kit.builders import make_node, make_pod


class Slow(Plugin):
    """Takes as long as the pod's label says, all in one call."""

    def pre_filter(self, cycle: Cycle) -> None:
        time.sleep(float(cycle.pod.labels.get("seconds", "0")))


class SlowOnEach(Plugin):
    """Takes a while for each node, so that no call alone is slow."""

    def filter_node(self, _cycle: Cycle, _node: NodeInfo) -> bool:
        time.sleep(0.03)
        return True


@contextmanager
def watched(*plugins: type[Plugin], nodes: int = 2) -> Iterator[tuple[World, list[str]]]:
    world = World(*plugins, nodes=[make_node(f"n{number}") for number in range(nodes)])
    reports: list[str] = []
    watchdog = PluginWatchdog(world.scheduler.profiles["default-scheduler"].plugins.values(), reports.append)
    watchdog.start()
    try:
        yield world, reports
    finally:
        watchdog.stop()


def slow_pod(name: str, seconds: float) -> object:
    return make_pod(name, metadata={"labels": {"seconds": str(seconds)}})


def test_a_plugin_that_blocks_is_named_with_pod_and_line() -> None:
    with watched(Slow) as (world, reports):
        world.attempt(slow_pod("p", 0.4))  # type: ignore[arg-type]
    (report,) = reports
    assert 'plugin "Slow" blocks: pre_filter has taken more than 100 ms for pod default/p, now in ' in report
    assert __file__ in report


def test_a_plugin_that_is_quick_is_not_named_however_often_it_runs() -> None:
    with watched(Slow) as (world, reports):
        end = time.monotonic() + 0.5
        number = 0
        while time.monotonic() < end:
            number += 1
            world.attempt(make_pod(f"p{number}"))
    assert reports == []


def test_the_nodes_of_a_one_node_form_count_together() -> None:
    with watched(SlowOnEach, nodes=15) as (world, reports):
        world.attempt(make_pod())
    (report,) = reports
    assert 'plugin "SlowOnEach" blocks: filter_node has taken more than 100 ms for pod default/p1' in report


def test_further_slow_calls_are_summed_up_by_the_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    reports: list[str] = []
    world = World(Slow, nodes=[make_node()])
    watchdog = PluginWatchdog(world.scheduler.profiles["default-scheduler"].plugins.values(), reports.append)
    plugin = world.scheduler.profiles["default-scheduler"].plugins["Slow"]
    assert isinstance(plugin, Slow)

    def one_call(start: float, seconds: float) -> None:
        """As the thread sees a call of so many seconds."""

        def looked_at(_seconds: float) -> None:
            frame = sys._getframe()
            for step in range(int(seconds / plugin_watchdog.LOOK_EVERY) + 1):
                watchdog.look(frame, start + step * plugin_watchdog.LOOK_EVERY)

        monkeypatch.setattr(time, "sleep", looked_at)
        world.attempt(make_pod(f"p{start:.0f}"))
        monkeypatch.undo()
        watchdog.look(None, start + seconds + plugin_watchdog.LOOK_EVERY)

    one_call(1000.0, 0.5)
    one_call(1010.0, 2.0)
    one_call(1020.0, 0.05)
    assert len(reports) == 1
    watchdog.look(None, 1061.0)
    assert reports[1] == (
        'plugin "Slow" blocks: 2 calls of pre_filter in the last minute took more than 100 ms each, 2.5 s together'
    )
    watchdog.look(None, 1122.0)
    assert len(reports) == 2, "nothing new"
    assert watchdog.seconds["Slow", "pre_filter"] == pytest.approx(2.5, abs=0.1)
