"""Collects what `/metrics` of any process shows, in a registry of its own.

Under `rest_client_`, `leader_election_` and `process_` stands what Kubernetes' own components say under these names,
with their labels and buckets. Numbers that are kept anyway (the size of a store) are read at each
scrape, and cost nothing until then.

    metrics = ProcessMetrics()
    metrics.follow(informers.by_kind.values())
    client.on_request = metrics.on_request
    metrics.gauge("podium_…", "What it counts.", lambda: …)

Also shows on `/metrics` what plugins offer to be seen, in any process.

A plugin whose numbers cannot be read is left out of the answer, and the log says so once; all others are shown.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector, generate_latest
from prometheus_client.core import Metric

from podium.client import Reflector
from podium.framework.plugin import Plugin
from podium.framework.plugin_extras import MetricKind, PluginMetric
from podium.framework.profile import ProfileRuntime
from podium.packages import version
from podium.serving.families import (
    Collector,
    Counters,
    Histograms,
    Labels,
    MetricFamily,
    ReadFamily,
    Reading,
    counters,
    gauges,
)
from podium.serving.log import LOG

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

MAKES: Final = {MetricKind.COUNTER: counters, MetricKind.GAUGE: gauges}
_REQUEST_SECONDS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)


class ProcessMetrics:
    """The metrics that every process has: its requests, watches, lease and memory. `families` come first."""

    def __init__(self, families: Iterable[MetricFamily] = ()) -> None:
        self._requests = Counters(
            "rest_client_requests_total", "Requests to the API server.", ("code", "method", "host")
        )
        self._request_seconds = Histograms(
            "rest_client_request_duration_seconds",
            "How long the API server took to begin its answer.",
            _REQUEST_SECONDS,
            ("verb", "host"),
        )
        self.families: list[MetricFamily] = [*families, self._requests, self._request_seconds]
        build: Reading = {(version(), platform.python_version()): 1.0}
        self.gauge("podium_build_info", "Always 1.", lambda: build, ("version", "python"))
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        self.registry.register(Collector(self.families))

    def follow(self, reflectors: Iterable[Reflector[Any]]) -> None:
        """Show how the watches fare that a process lives by."""
        followed = {(each.resource.name,): each for each in reflectors}

        def read(value: Callable[[Reflector[Any]], float]) -> Callable[[], Reading]:
            return lambda: {labels: value(each) for labels, each in followed.items()}

        by_resource = ("resource",)
        self.counter(
            "podium_lists_total", "How often a whole collection was listed.", read(lambda each: each.lists), by_resource
        )
        self.counter(
            "podium_watch_restarts_total",
            "Watches that were begun because the one before had ended.",
            read(lambda each: max(0, each.watches - 1)),
            by_resource,
        )
        self.gauge(
            "podium_watch_trouble",
            "Whether a collection can be neither listed nor watched at the moment (1); the log says why.",
            read(lambda each: float(each.problem is not None)),
            by_resource,
        )
        self.gauge(
            "podium_watched_objects", "Objects known by watching.", read(lambda each: len(each.store)), by_resource
        )

    def gauge(self, name: str, text: str, read: Callable[[], Reading], labels: Labels = ()) -> None:
        """Show a number, or one by label values, read at every scrape."""
        self.families.append(ReadFamily(gauges, name, text, read, labels))

    def counter(self, name: str, text: str, read: Callable[[], Reading], labels: Labels = ()) -> None:
        """The same for numbers that only grow; the name ends in `_total`."""
        self.families.append(ReadFamily(counters, name, text, read, labels))

    def show(self, metrics: Iterable[PluginMetric]) -> None:
        """Show numbers that are read elsewhere, whatever the profile."""
        for each in metrics:
            self.families.append(ReadFamily(MAKES[each.kind], each.name, each.text, each.read, each.labels))

    def on_request(self, verb: str, host: str, code: str, seconds: float) -> None:
        """To be set as a client's `on_request`."""
        self._requests.add(code, verb, host)
        self._request_seconds.of(verb, host).record(seconds)

    def leads(self, lease: str, leading: Callable[[], bool]) -> None:
        """Show whether this process holds a lease."""
        self.gauge(
            "leader_election_master_status",
            "Whether this process leads (1) or not (0), by the name of the lease.",
            lambda: {(lease,): float(leading())},
            ("name",),
        )

    def render(self) -> bytes:
        """All of it in the text format of Prometheus."""
        return generate_latest(self.registry)


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
