"""Collects everything `/metrics` shows, in a registry of its own.

Under `scheduler_`, `rest_client_`, `leader_election_` and `process_` stands what kube-scheduler v1.36 says under these
names, with its labels and buckets. What only Podium has to say stands under `podium_`. Numbers that live somewhere
anyway (the queue's lengths, the cluster's size) are read at each scrape, and cost nothing until then.

    metrics = Metrics(clock, now=time.perf_counter)
    scheduler = Scheduler(…, timer=metrics.timer)
    metrics.attach(scheduler)
    metrics.follow(informers.by_kind.values())
    client.on_request = metrics.on_request
    metrics.gauge("podium_…", "What it counts.", lambda: …)
"""

from __future__ import annotations

import platform
import random
from collections.abc import Callable, Iterable
from importlib.metadata import version
from typing import Any

from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector, generate_latest

from podium.client import Reflector
from podium.engine.scheduler import Scheduler
from podium.framework.clock import Clock
from podium.live.metrics.engine import MetricsTimer
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

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_REQUEST_SECONDS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)


class Metrics:
    """`clock` is the engine's; `now` gives the time that durations are taken with; `rng` picks what is sampled."""

    def __init__(self, clock: Clock, *, now: Callable[[], float], rng: random.Random | None = None) -> None:
        self.timer = MetricsTimer(clock, now, rng or random.Random())
        self._requests = Counters(
            "rest_client_requests_total", "Requests to the API server.", ("code", "method", "host")
        )
        self._request_seconds = Histograms(
            "rest_client_request_duration_seconds",
            "How long the API server took to begin its answer.",
            _REQUEST_SECONDS,
            ("verb", "host"),
        )
        self._families: list[MetricFamily] = [*self.timer.families, self._requests, self._request_seconds]
        build: Reading = {(version("podium"), platform.python_version()): 1.0}
        self.gauge("podium_build_info", "Always 1.", lambda: build, ("version", "python"))
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        self.registry.register(Collector(self._families))

    def attach(self, scheduler: Scheduler, bindings: Callable[[], int] | None = None) -> None:
        """Show what a scheduler's queue, cluster and memory hold; `bindings` says how many are under way."""
        self._families += _of_queue(scheduler)
        self._families += _of_cluster(scheduler)
        if bindings is not None:
            self.gauge(
                "scheduler_goroutines",
                "Tasks at work, by what they do.",
                lambda: {("binding",): bindings()},
                ("operation",),
            )

    def follow(self, reflectors: Iterable[Reflector[Any]]) -> None:
        """Show how the watches fare that a scheduler lives by."""
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
        self._families.append(ReadFamily(gauges, name, text, read, labels))

    def counter(self, name: str, text: str, read: Callable[[], Reading], labels: Labels = ()) -> None:
        """The same for numbers that only grow; the name ends in `_total`."""
        self._families.append(ReadFamily(counters, name, text, read, labels))

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


def _of_queue(scheduler: Scheduler) -> list[MetricFamily]:
    queue = scheduler.queue

    def pending() -> Reading:
        return {(name,): number for name, number in queue.pending()._asdict().items()}

    def rejected() -> Reading:
        return {labels: number for labels, number in queue.rejections().items()}  # noqa: C416 (mypy tells them apart)

    def in_flight() -> Reading:
        numbers: dict[Labels, float] = {("PodPopped",): len(queue.in_flight)}
        for recorded in queue.in_flight.events():
            labels = (recorded.listeners.label,)
            numbers[labels] = numbers.get(labels, 0) + 1
        return numbers

    return [
        ReadFamily(
            gauges,
            "scheduler_pending_pods",
            "Pods that wait, by the part of the queue they are in.",
            pending,
            ("queue",),
        ),
        ReadFamily(
            gauges,
            "scheduler_unschedulable_pods",
            "Pods that wait because a plugin turned them away; one pod counts for each plugin that did.",
            rejected,
            ("plugin", "profile"),
        ),
        ReadFamily(
            gauges,
            "scheduler_inflight_events",
            "Pods being tried, and the events kept for them until they have been.",
            in_flight,
            ("event",),
        ),
    ]


def _of_cluster(scheduler: Scheduler) -> list[MetricFamily]:
    cluster, cache = scheduler.cluster, scheduler.answer_cache

    def size() -> Reading:
        assumed = sum(placed.assumed for placed in cluster.pods.values())
        return {
            ("nodes",): len(cluster.order.rows),
            ("pods",): len(cluster.pods),
            ("assumed_pods",): assumed,
        }

    return [
        ReadFamily(gauges, "scheduler_cache_size", "Nodes and placed pods the scheduler knows of.", size, ("type",)),
        ReadFamily(
            gauges, "podium_answer_cache_entries", "Signatures of pods with cached answers.", lambda: len(cache)
        ),
        ReadFamily(gauges, "podium_answer_cache_bytes", "Memory that cached answers take, about.", lambda: cache.bytes),
        ReadFamily(
            counters,
            "podium_answer_cache_decisions_total",
            "Decisions made from cached answers; all others asked every plugin about every node.",
            lambda: cache.decisions,
        ),
        ReadFamily(
            counters,
            "podium_answer_cache_errors_total",
            "Unexpected exceptions in the answer cache; the pods were decided without it.",
            lambda: cache.errors.count,
        ),
    ]
