"""Shows on `/metrics` who decides where a model scores, how long the model takes, and how well it does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from podium.framework.plugin_extras import MetricKind, PluginMetric
from podium_lab.model_decisions import ModelDecisions

QUANTILES: Final = (0.5, 0.99)


def decision_metrics(prefix: str, plugin: str, decisions: ModelDecisions) -> Iterator[PluginMetric]:
    """`prefix` begins all names; `plugin` is named in the texts."""
    guard, health = decisions.guard, decisions.health
    yield PluginMetric(
        MetricKind.COUNTER,
        f"{prefix}_decisions_total",
        f"Decisions with {plugin}, by who made them: the model, or the fallback and why.",
        guard.decisions,
        ("source",),
    )
    yield PluginMetric(
        MetricKind.COUNTER,
        f"{prefix}_overruns_total",
        "Answers of the model that took longer than its deadline.",
        lambda: guard.overruns,
    )
    yield PluginMetric(
        MetricKind.GAUGE,
        f"{prefix}_mode",
        f"1 for the mode that {plugin} works in: off, shadow, canary, active, or demoted.",
        lambda: {(decisions.mode,): 1.0},
        ("mode",),
    )
    yield PluginMetric(
        MetricKind.COUNTER,
        f"{prefix}_demotions_total",
        "How often the model was found to do badly and no longer decided.",
        lambda: health.demotions,
    )
    yield PluginMetric(
        MetricKind.COUNTER,
        f"{prefix}_comparisons_total",
        "Decisions for which model and fallback were compared: a best node of both is the same, or differs.",
        lambda: {(outcome,): number for outcome, number in list(health.comparisons.items())},
        ("outcome",),
    )
    yield PluginMetric(
        MetricKind.COUNTER,
        f"{prefix}_rank_correlation_sum_total",
        "The sum of the rank correlations of all comparisons.",
        lambda: health.correlations,
    )
    yield PluginMetric(
        MetricKind.GAUGE,
        f"{prefix}_seconds",
        "Seconds that the last 10,000 answers of the model took, at most, by quantile.",
        lambda: {
            (str(quantile),): seconds for quantile, seconds in zip(QUANTILES, health.seconds(*QUANTILES), strict=False)
        },
        ("quantile",),
    )
    yield PluginMetric(
        MetricKind.GAUGE,
        f"{prefix}_bad_ratio",
        "The share of the last 1,000 answers that were late or failed.",
        lambda: health.bad_share,
    )
