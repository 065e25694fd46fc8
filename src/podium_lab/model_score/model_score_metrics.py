"""Shows on `/metrics` what ModelScore decides, how its model does, and which outcomes are still to be sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from podium.framework.plugin_extras import MetricKind, PluginMetric
from podium_lab.model_metrics import decision_metrics

if TYPE_CHECKING:
    from podium_lab.model_score.plugin import ModelScore


def model_score_metrics(plugin: ModelScore) -> Iterator[PluginMetric]:
    yield from decision_metrics("podium_model", plugin.name, plugin.decisions)
    outcomes = plugin.outcomes
    yield PluginMetric(
        MetricKind.COUNTER,
        "podium_model_outcomes_total",
        "Outcomes of decisions for the agent: sent, or dropped because too many waited.",
        lambda: {
            ("sent",): 0.0 if outcomes is None else outcomes.sent,
            ("dropped",): 0.0 if outcomes is None else outcomes.dropped,
        },
        ("outcome",),
    )
    yield PluginMetric(
        MetricKind.GAUGE,
        "podium_model_outcomes_waiting",
        "Outcomes of decisions that are still to be sent to the agent.",
        lambda: 0.0 if outcomes is None else outcomes.waiting,
    )
