"""Shows on `/metrics` how old measured load is, how often refreshing failed, and what became of the samples.

    podium_load_age_seconds                 of the newest value; without values there is none
    podium_load_nodes                       nodes that have a value
    podium_load_samples{outcome=…}          of the last answer: used, unmatched (no node), duplicate, not_finite
    podium_load_refreshes_total             how often a series was fetched
    podium_load_refresh_failures_total      how often that failed, or the answer said nothing about any node
    podium_load_trouble                     1 while the last refresh failed

Each by `source` and `query`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from podium.framework.clock import Clock
from podium.framework.plugin_extras import LabelValues, MetricKind, PluginMetric
from podium.load.sources import Followed, Telemetry

BY_SERIES = ("source", "query")


def load_metrics(telemetry: Telemetry, clock: Clock) -> list[PluginMetric]:
    """What there is to show of everything that is followed, now and later."""

    def read(value: Callable[[Followed], float | None]) -> Callable[[], Mapping[LabelValues, float]]:
        def reading() -> Mapping[LabelValues, float]:
            values = {_labels(each): value(each) for each in telemetry.followed}
            return {labels: number for labels, number in values.items() if number is not None}

        return reading

    def age(each: Followed) -> float | None:
        return clock.now() - each.readings.measured_at if each.readings.values else None

    def samples() -> Mapping[LabelValues, float]:
        numbers: dict[LabelValues, float] = {}
        for each in telemetry.followed:
            for outcome, count in each.last.outcomes().items():
                numbers[*_labels(each), outcome] = float(count)
        return numbers

    return [
        PluginMetric(
            MetricKind.GAUGE,
            "podium_load_age_seconds",
            "Age of the newest measured value.",
            read(age),
            BY_SERIES,
            by_profile=False,
        ),
        PluginMetric(
            MetricKind.GAUGE,
            "podium_load_nodes",
            "Nodes that have a measured value.",
            read(lambda each: len(each.readings.values)),
            BY_SERIES,
            by_profile=False,
        ),
        PluginMetric(
            MetricKind.GAUGE,
            "podium_load_samples",
            "What became of the samples of the last answer.",
            samples,
            (*BY_SERIES, "outcome"),
            by_profile=False,
        ),
        PluginMetric(
            MetricKind.COUNTER,
            "podium_load_refreshes_total",
            "How often measured load was fetched.",
            read(lambda each: each.refreshes),
            BY_SERIES,
            by_profile=False,
        ),
        PluginMetric(
            MetricKind.COUNTER,
            "podium_load_refresh_failures_total",
            "How often that failed, or the answer said nothing about any node.",
            read(lambda each: each.failures),
            BY_SERIES,
            by_profile=False,
        ),
        PluginMetric(
            MetricKind.GAUGE,
            "podium_load_trouble",
            "Whether the last refresh failed (1); the log says why.",
            read(lambda each: float(each.readings.problem is not None)),
            BY_SERIES,
            by_profile=False,
        ),
    ]


def _labels(each: Followed) -> tuple[str, str]:
    return str(each.series.source), each.series.query
