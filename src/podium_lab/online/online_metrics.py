"""Shows on `/metrics` what OnlineScore decides and learns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from podium.framework.plugin_extras import MetricKind, PluginMetric

if TYPE_CHECKING:
    from podium_lab.online.plugin import OnlineScore


def online_metrics(plugin: OnlineScore) -> Iterator[PluginMetric]:
    learner = plugin.learner
    yield PluginMetric(
        MetricKind.COUNTER,
        "podium_online_decisions_total",
        "Decisions with OnlineScore, by who made them: the model, or the fallback and why.",
        plugin.guard.decisions,
        ("source",),
    )
    yield PluginMetric(
        MetricKind.COUNTER,
        "podium_online_rewards_total",
        "Rewards by what became of them: learnt, or refused and why; none: placements that no reward came for.",
        lambda: {(outcome,): number for outcome, number in list(learner.outcomes.items())},
        ("outcome",),
    )
    yield PluginMetric(
        MetricKind.COUNTER,
        "podium_online_reward_sum_total",
        "The sum of the rewards learnt from.",
        lambda: learner.sum_of_rewards,
    )
    yield PluginMetric(
        MetricKind.GAUGE,
        "podium_online_waiting",
        "Placements that wait for their reward.",
        lambda: len(learner.waiting),
    )
    yield PluginMetric(
        MetricKind.GAUGE,
        "podium_online_error",
        "Mean absolute error of the expected rewards, of late.",
        lambda: {(kind,): model.recent_error for kind, model in learner.models.items()},
        ("type",),
    )
    yield PluginMetric(
        MetricKind.GAUGE,
        "podium_online_width",
        "Deviation of the expected rewards, in the median over nodes.",
        lambda: {(kind,): model.width for kind, model in plugin.published.items()},
        ("type",),
    )
    yield PluginMetric(
        MetricKind.COUNTER,
        "podium_online_changes_total",
        "How often errors grew suddenly, so that most of what was learnt was forgotten.",
        lambda: {(kind,): model.changes for kind, model in learner.models.items()},
        ("type",),
    )
