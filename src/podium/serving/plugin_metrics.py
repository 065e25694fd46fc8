"""Shows on `/metrics` what plugins offer to be seen, in any process.

A plugin whose numbers cannot be read is left out of the answer, and the log says so once; all others are shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from prometheus_client.core import Metric

from podium.framework.plugin import Plugin
from podium.framework.plugin_extras import PluginMetric
from podium.framework.profile import ProfileRuntime
from podium.serving.families import Labels, MetricFamily, Reading
from podium.serving.log import LOG
from podium.serving.process_metrics import MAKES


class _Offer(NamedTuple):
    profile: str
    plugin: str
    metric: PluginMetric


def plugin_families(profiles: Mapping[str, ProfileRuntime]) -> list[MetricFamily]:
    """One family for each name that plugins offer numbers under."""
    found: dict[str, list[_Offer]] = {}
    for profile, runtime in profiles.items():
        for plugin in runtime.plugins.values():
            for metric in _metrics_of(plugin):
                found.setdefault(metric.name, []).append(_Offer(profile, plugin.name, metric))
    return [_PluginFamily(offers) for offers in found.values()]


def _metrics_of(plugin: Plugin) -> list[PluginMetric]:
    try:
        return list(plugin.metrics())
    except Exception as error:  # whatever the plugin raises: the process runs without its metrics
        LOG.warning('the metrics of plugin "%s" are not shown: %s: %s', plugin.name, type(error).__name__, error)
        return []


class _PluginFamily:
    """The numbers of all profiles under one name."""

    def __init__(self, offers: list[_Offer]) -> None:
        self._offers = offers
        self._reported = False
        self.name = offers[0].metric.name

    def collect(self) -> Metric:
        _profile, plugin, metric = self._offers[0]
        try:
            if not metric.by_profile:
                return MAKES[metric.kind](self.name, metric.text, metric.labels, _numbers(metric))
            return MAKES[metric.kind](self.name, metric.text, ("profile", *metric.labels), self._by_profile())
        except Exception as error:  # whatever the plugin raises, or what is no number
            if not self._reported:
                self._reported = True
                what = f"{type(error).__name__}: {error}"
                LOG.warning('metric %s of plugin "%s" is not shown: %s', self.name, plugin, what)
            return Metric("podium", "", "gauge")  # without samples: left out

    def _by_profile(self) -> Reading:
        return {
            (profile, *values): number
            for profile, _plugin, metric in self._offers
            for values, number in _numbers(metric).items()
        }


def _numbers(metric: PluginMetric) -> dict[Labels, float]:
    reading = metric.read()
    if not isinstance(reading, Mapping):
        return {(): float(reading)}
    return {tuple(map(str, values)): float(number) for values, number in reading.items()}
