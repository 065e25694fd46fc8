"""Shows on `/metrics` what LearnedScore decides, how well it does, and how far the pods are from its training."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from podium.framework.plugin_extras import MetricKind, PluginMetric
from podium_lab.model_metrics import decision_metrics

if TYPE_CHECKING:
    from podium_lab.learned.plugin import LearnedScore


def learned_metrics(plugin: LearnedScore) -> Iterator[PluginMetric]:
    yield from decision_metrics("podium_learned", plugin.name, plugin.decisions)
    yield PluginMetric(
        MetricKind.GAUGE,
        "podium_learned_drift",
        "The distance, 0 to 1, of the pods seen from those of the training.",
        lambda: plugin.drift,
    )
    yield PluginMetric(
        MetricKind.GAUGE,
        "podium_learned_unknown_models",
        "GPU models of nodes that the training had not.",
        lambda: plugin.unknown_models,
    )
