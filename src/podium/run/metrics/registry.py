"""Collects everything `/metrics` of a scheduler shows.

Under `scheduler_` stands what kube-scheduler v1.36 says under these names, with its labels and buckets. What only
Podium has to say stands under `podium_`.

    metrics = Metrics(clock, now=time.perf_counter)
    scheduler = Scheduler(…, Driver(…, timer=metrics.timer), …)
    metrics.attach(scheduler)
"""

from __future__ import annotations

import random
from collections.abc import Callable

from podium.engine.scheduler import Scheduler
from podium.framework.clock import Clock
from podium.run.metrics.claims import ClaimMetrics
from podium.run.metrics.engine import MetricsTimer
from podium.serving.families import Labels, MetricFamily, ReadFamily, Reading, counters, gauges
from podium.serving.plugin_metrics import plugin_families
from podium.serving.process_metrics import ProcessMetrics


class Metrics(ProcessMetrics):
    """`clock` is the engine's; `now` gives the time that durations are taken with; `rng` picks what is sampled."""

    def __init__(self, clock: Clock, *, now: Callable[[], float], rng: random.Random | None = None) -> None:
        self.timer = MetricsTimer(clock, now, rng or random.Random())
        self.claims = ClaimMetrics()
        super().__init__(self.timer.families)
        self.families += self.claims.families

    def attach(self, scheduler: Scheduler, bindings: Callable[[], int] | None = None) -> None:
        """Show what a scheduler's queue, cluster and memory hold; `bindings` says how many are under way."""
        self.families += _of_queue(scheduler)
        self.families += _of_cluster(scheduler)
        self.families += _of_batches(scheduler)
        self.families += plugin_families(scheduler.profiles)
        if bindings is not None:
            self.gauge(
                "scheduler_goroutines",
                "Tasks at work, by what they do.",
                lambda: {("binding",): bindings()},
                ("operation",),
            )


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


def _of_batches(scheduler: Scheduler) -> list[MetricFamily]:
    batches = scheduler.batches

    def attempts() -> Reading:
        return {(name, each): number for name, batch in batches.items() for each, number in batch.attempts.items()}

    def flushes() -> Reading:
        return {(name, each): number for name, batch in batches.items() for each, number in batch.flushes.items()}

    return [
        ReadFamily(
            counters,
            "scheduler_batch_attempts_total",
            "Pods by whether the pod before them left them a node, and whether they took it.",
            attempts,
            ("profile", "result"),
        ),
        ReadFamily(
            counters,
            "scheduler_batch_cache_flushed_total",
            "Times that the scores of a pod were of no use to the next, by reason.",
            flushes,
            ("profile", "reason"),
        ),
    ]
