"""Shows the configuration in force, how long plugins take, and how fresh measured load is."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from prometheus_client.core import Metric

from podium.config import to_dict
from podium.config.resolved import Profile
from podium.config.secrets import without_secrets
from podium.kube.versions import Gates
from podium.run.dashboard import SchedulerView
from podium_dashboard.records import (
    ConfigurationAnswer,
    DashboardState,
    PluginPlace,
    PluginTime,
    PointPlugins,
    ProfilePoints,
    TelemetryRow,
)

PLUGIN_TIMES: Final = "scheduler_plugin_execution_duration_seconds"


def configuration_answer(state: DashboardState) -> Callable[[SchedulerView], ConfigurationAnswer]:
    """Reads what `/configz` shows, and what the metrics say of plugins."""

    def take(view: SchedulerView) -> ConfigurationAnswer:
        return ConfigurationAnswer(
            state=state,
            configuration=without_secrets(to_dict(view.config)),
            profiles=[_points(each, view.config.gates) for each in view.config.profiles],
            feature_gates=sorted(map(str, view.config.gates)),
            times=list(_times(view)),
            failures={" ".join(where): number for where, number in view.failures.items()},
            telemetry=list(_telemetry(view)),
        )

    return take


def _points(profile: Profile, gates: Gates) -> ProfilePoints:
    return ProfilePoints(
        name=profile.scheduler_name,
        points=[
            PointPlugins(point=point, plugins=[PluginPlace(name=name, weight=weight) for name, weight in found.items()])
            for point, found in profile.running_plugins(gates).items()
        ],
    )


def _times(view: SchedulerView) -> Iterator[PluginTime]:
    families = [] if view.metrics is None else view.metrics.families
    for family in families:
        if family.name == PLUGIN_TIMES:
            yield from _times_in(family.collect())


def _times_in(metric: Metric) -> Iterator[PluginTime]:
    buckets: dict[tuple[str, str], dict[float, float]] = {}
    sums: dict[tuple[str, str], float] = {}
    for sample in metric.samples:
        key = sample.labels["plugin"], sample.labels["extension_point"]
        if sample.name.endswith("_bucket"):
            bound = float(sample.labels["le"])
            found = buckets.setdefault(key, {})
            found[bound] = found.get(bound, 0.0) + sample.value
        elif sample.name.endswith("_sum"):
            sums[key] = sums.get(key, 0.0) + sample.value
    for key, found in sorted(buckets.items()):
        bounds = sorted(found.items())
        calls = bounds[-1][1]
        if calls:
            yield PluginTime(
                plugin=key[0],
                step=key[1],
                calls=int(calls),
                mean_seconds=sums.get(key, 0.0) / calls,
                p50_seconds=_quantile(bounds, 0.5),
                p99_seconds=_quantile(bounds, 0.99),
            )


def _quantile(bounds: Sequence[tuple[float, float]], share: float) -> float | None:
    """The bound of the first bucket that holds this share; None past the last bound.

    >>> _quantile([(0.1, 1.0), (0.2, 9.0), (math.inf, 10.0)], 0.5)
    0.2
    """
    wanted = share * bounds[-1][1]
    found = next(bound for bound, count in bounds if count >= wanted)
    return None if math.isinf(found) else found


def _telemetry(view: SchedulerView) -> Iterator[TelemetryRow]:
    for each in view.followed:
        readings, source = each.readings, each.series.source
        oldest = readings.oldest
        yield TelemetryRow(
            source=source.kind,
            address=source.address or "",
            query=str(each.series.query),
            problem=readings.problem,
            nodes=len(readings.values),
            oldest_seconds=round(max(0.0, view.now - oldest), 3) if oldest else None,
        )
