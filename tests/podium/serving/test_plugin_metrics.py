"""What plugins offer on /metrics: merged over profiles, and left out where it cannot be read."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

import pytest

from podium import MetricKind, Plugin, PluginMetric
from podium.framework import Cycle, ManualClock
from podium.run.metrics import Metrics
from tests.podium.engine.schedulers import World
from tests.podium.framework.runtimes import PROFILE


class Counts(Plugin):
    """Offers a number of its own, and one that is the same in every profile."""

    def filter_node(self, _cycle: Cycle, _node: Any) -> bool:
        return True

    def metrics(self) -> Iterable[PluginMetric]:
        length = len(self.handle.scheduler_name)
        return [
            PluginMetric(MetricKind.COUNTER, "x_total", "Its length.", lambda: length),
            PluginMetric(MetricKind.GAUGE, "y", "By letter.", lambda: {("a",): 1.0, ("b",): length}, ("letter",)),
            PluginMetric(MetricKind.GAUGE, "z", "Of all.", lambda: {("a",): 5.0}, ("letter",), by_profile=False),
        ]


def shown(*plugins: type[Plugin], profiles: tuple[str, ...] = (PROFILE,)) -> list[str]:
    """The lines that stand for plugins' numbers, at the second scrape."""
    metrics = Metrics(ManualClock(), now=lambda: 0.0)
    before = set(metrics.render().decode().splitlines())
    metrics.attach(World(*plugins, profiles=profiles).scheduler)
    metrics.render()
    ours = ("x", "y", "z", "podium_build")
    lines = metrics.render().decode().splitlines()
    return [line for line in lines if line.removeprefix("# HELP ").startswith(ours) and line not in before]


def test_numbers_of_a_profile_have_its_name_as_their_first_label() -> None:
    assert shown(Counts, profiles=("one", "three")) == [
        "# HELP x_total Its length.",
        'x_total{profile="one"} 3.0',
        'x_total{profile="three"} 5.0',
        "# HELP y By letter.",
        'y{letter="a",profile="one"} 1.0',
        'y{letter="b",profile="one"} 3.0',
        'y{letter="a",profile="three"} 1.0',
        'y{letter="b",profile="three"} 5.0',
        "# HELP z Of all.",
        'z{letter="a"} 5.0',
    ]


def fail() -> float:
    raise KeyError("x")


@pytest.mark.parametrize(
    ("offered", "warning"),
    [
        (
            PluginMetric(MetricKind.GAUGE, "x", "Fails.", fail),
            "metric x of plugin \"Odd\" is not shown: KeyError: 'x'",
        ),
        (
            PluginMetric(MetricKind.GAUGE, "x", "Is no number.", lambda: "much"),  # type: ignore[arg-type, return-value]
            "metric x of plugin \"Odd\" is not shown: ValueError: could not convert string to float: 'much'",
        ),
        (
            PluginMetric(MetricKind.GAUGE, "podium_build_info", "It is Podium's.", lambda: 1.0),
            None,
        ),
        (None, "the metrics of plugin \"Odd\" are not shown: KeyError: 'x'"),
    ],
)
def test_what_cannot_be_shown_is_left_out_and_said_once(
    offered: PluginMetric | None, warning: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    class Odd(Counts):
        def metrics(self) -> Iterable[PluginMetric]:
            yield PluginMetric(MetricKind.GAUGE, "z", "Goes on.", lambda: 1.0) if offered else fail()  # type: ignore[misc]
            if offered is not None:
                yield offered

    with caplog.at_level(logging.WARNING, "podium"):
        lines = shown(Odd)
    assert lines == (["# HELP z Goes on.", f'z{{profile="{PROFILE}"}} 1.0'] if offered else [])
    assert [record.getMessage() for record in caplog.records] == ([warning] if warning else [])
