"""Shows how controllers stand as gauges on /metrics.

Gauges are bounded in number: those of the hundred controllers that are nearest to breaking their SLO, or beyond.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Final

from podium.framework.plugin import LabelValues, MetricKind, PluginMetric
from podium_plugins.qos.table import QosRow

MOST_GAUGES: Final = 100


def controller_gauges(controllers: Callable[[], list[QosRow]]) -> Iterator[PluginMetric]:
    """Every profile's ledger sees all pods, so the numbers of one are those of all."""

    def read(column: str) -> dict[LabelValues, float]:
        return {(row.controller,): getattr(row, column) for row in _most_urgent(controllers())}

    for name, text, column in (
        ("podium_qos", "The share of its time that a controller ran; the most urgent controllers only.", "qos"),
        ("podium_qos_slo", "The share that it was promised.", "slo"),
        ("podium_qos_metric_seconds", "Seconds until its SLO is violated, or (below 0) that it lacks.", "metric_s"),
    ):
        yield PluginMetric(MetricKind.GAUGE, name, text, partial(read, column), ("controller",), by_profile=False)


def _most_urgent(rows: Iterable[QosRow]) -> list[QosRow]:
    known = (row for row in rows if not math.isnan(row.metric_s))
    return sorted(known, key=lambda row: (row.metric_s, row.controller))[:MOST_GAUGES]
