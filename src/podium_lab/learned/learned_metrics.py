"""Shows on `/metrics` what LearnedScore decides, how long it takes, and how well its model does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from podium.framework.plugin_extras import MetricKind, PluginMetric

if TYPE_CHECKING:
    from podium_lab.learned.plugin import LearnedScore

QUANTILES: Final = (0.5, 0.99)


def learned_metrics(plugin: LearnedScore) -> Iterator[PluginMetric]:
    guard, health = plugin.guard, plugin.health
    yield PluginMetric(
        MetricKind.COUNTER,
        "podium_learned_decisions_total",
        "Decisions with LearnedScore, by who made them: the model, or the fallback and why.",
        guard.decisions,
        ("source",),
    )
    yield PluginMetric(
        MetricKind.COUNTER,
        "podium_learned_overruns_total",
        "Answers of the model that took longer than its deadline.",
        lambda: guard.overruns,
    )
    yield PluginMetric(
        MetricKind.GAUGE,
        "podium_learned_mode",
        "1 for the mode that LearnedScore works in: off, shadow, canary, active, or demoted.",
        lambda: {(plugin.mode,): 1.0},
        ("mode",),
    )
    yield PluginMetric(
        MetricKind.COUNTER,
        "podium_learned_demotions_total",
        "How often the model was found to do badly and no longer decided.",
        lambda: health.demotions,
    )
    yield PluginMetric(
        MetricKind.COUNTER,
        "podium_learned_comparisons_total",
        "Decisions for which model and fallback were compared: a best node of both is the same, or differs.",
        lambda: {(outcome,): number for outcome, number in list(health.comparisons.items())},
        ("outcome",),
    )
    yield PluginMetric(
        MetricKind.COUNTER,
        "podium_learned_rank_correlation_sum_total",
        "The sum of the rank correlations of all comparisons.",
        lambda: health.correlations,
    )
    yield PluginMetric(
        MetricKind.GAUGE,
        "podium_learned_seconds",
        "Seconds that the last 10,000 answers of the model took, at most, by quantile.",
        lambda: {
            (str(quantile),): seconds for quantile, seconds in zip(QUANTILES, health.seconds(*QUANTILES), strict=False)
        },
        ("quantile",),
    )
    yield PluginMetric(
        MetricKind.GAUGE,
        "podium_learned_bad_ratio",
        "The share of the last 1,000 answers that were late or failed.",
        lambda: health.bad_share,
    )
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
