"""Counts requests and their time for `/metrics`.

podium_extender_requests_total{agent, verb, outcome}             outcome: answered, refused (bad input), failed
podium_extender_request_duration_seconds{agent, verb}            from the whole request here to its answer sent off
podium_extender_rejected_total{reason}                           requests that reached no agent: size, path, …
podium_extender_nodes, podium_extender_synced, podium_answer_cache_errors_total, podium_build_info

and what plugins offer (`serving.process_metrics`).
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector, generate_latest

from podium.packages import version
from podium.serving.families import (
    Collector,
    Counters,
    Histogram,
    Histograms,
    MetricFamily,
    ReadFamily,
    Reading,
    counters,
    exponential,
    gauges,
)

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = exponential(0.00002, 1.5, 34)
"""Bounds from 20 µs to 13 s, fine enough to tell a 99th percentile by."""


class ExtenderMetrics:
    """The metrics of one process."""

    def __init__(
        self,
        nodes: Callable[[], int],
        synced: Callable[[], bool],
        cache_errors: Callable[[], int] = lambda: 0,
        more: Iterable[MetricFamily] = (),
    ) -> None:
        self._requests = Counters(
            "podium_extender_requests_total", "Requests answered, by outcome.", ("agent", "verb", "outcome")
        )
        self._seconds = Histograms(
            "podium_extender_request_duration_seconds",
            "Seconds from the whole request being here to its answer being sent off.",
            SECONDS,
            ("agent", "verb"),
        )
        self._rejected = Counters(
            "podium_extender_rejected_total", "Requests that reached no agent, by reason.", ("reason",)
        )
        build: Reading = {(version(), platform.python_version()): 1.0}
        self.families: list[MetricFamily] = [
            self._requests,
            self._seconds,
            self._rejected,
            ReadFamily(gauges, "podium_extender_nodes", "Nodes known.", lambda: float(nodes())),
            ReadFamily(gauges, "podium_extender_synced", "Whether the watch has listed all.", lambda: float(synced())),
            ReadFamily(
                counters,
                "podium_answer_cache_errors_total",
                "Unexpected exceptions in the answer cache; the requests were answered without it.",
                lambda: float(cache_errors()),
            ),
            ReadFamily(gauges, "podium_build_info", "Always 1.", lambda: build, ("version", "python")),
            *more,
        ]
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        GCCollector(registry=self._registry)
        self._registry.register(Collector(self.families))

    def seconds_of(self, agent: str, verb: str) -> Histogram:
        return self._seconds.of(agent, verb)

    def answered(self, agent: str, verb: str, outcome: str) -> None:
        self._requests.add(agent, verb, outcome)

    def rejected(self, reason: str) -> None:
        self._rejected.add(reason)

    def render(self) -> bytes:
        return generate_latest(self._registry)
