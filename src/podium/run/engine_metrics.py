"""Times the engine, and makes kube-scheduler's metrics about attempts, queue and plugins of it.

Names, labels and buckets are kube-scheduler's, so that its dashboards and alerts work. Where Podium works another way,
a number says what is true of Podium:

- A pod decided by the answer cache has one Filter and one Score observation for the part that was asked again, and none
  of PreFilter and PreScore, which did not run as such.
- Filter and Score see all nodes at once, so a plugin's execution is observed, and its evaluation counted, once for a
  decision and not once for every node; a plugin whose cached answer is fresh counts as evaluated, as the decision rests
  on what it said.
- A pod that PreFilter refuses counts as one without a hint; kube-scheduler does not ask for one then.
- A gated pod's PreEnqueue has the status of the plugin that gates it; and the time evictions take ends when they do.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import TypeVar

from podium.framework.clock import Clock
from podium.framework.events import Event, Hint
from podium.framework.queued import QueuedPod
from podium.framework.status import Code
from podium.framework.timer import Done
from podium.kube import Pod
from podium.run.timer_metrics import CODE_NAMES, ProfileMetricsTimer
from podium.serving.families import Counters, Histograms, MetricFamily, ReadFamily, Reading, counters, exponential

SAMPLED = 0.1
"""The share of attempts in which plugins are timed one by one."""
SAMPLES_APART = 0.02
"""Seconds between two such attempts, at least: when thousands of pods come, fewer than one in ten tell enough."""

MANY_ATTEMPTS = 15
FOLDED_AFTER = 2000
"""Attempts and events after which what was observed of them is sorted into buckets."""

T = TypeVar("T")
Observe = Callable[[float], None]

_LATENCY = exponential(0.001, 2, 15)
_SHORT = exponential(0.0001, 2, 12)
_LONG = exponential(0.01, 2, 20)
_TINY = exponential(0.00001, 1.5, 20)
_HINT = exponential(0.00001, 2, 12)


class MetricsTimer:
    """A `podium.framework.timer.Timer` that fills metrics. `now` gives its time, `clock` the engine's."""

    def __init__(self, clock: Clock, now: Callable[[], float], rng: random.Random) -> None:
        self._now = now
        self._clock = clock
        self._rng = rng
        self._profiles: dict[str, ProfileMetricsTimer] = {}
        self._deciding: QueuedPod | None = None
        self._next_sample = 0.0
        self._sampled: ProfileMetricsTimer | None = None
        self._gathered = 0
        self._stays: Counter[tuple[str, str]] = Counter()
        self._group_entries: Counter[tuple[str, ...]] = Counter()
        self._attempts = Histograms(
            "scheduler_scheduling_attempt_duration_seconds",
            "How long attempts to schedule a pod took, binding included.",
            _LATENCY,
            ("result", "profile"),
        )
        self._attempts_counted = ReadFamily(
            counters,
            "scheduler_schedule_attempts_total",
            "Attempts to schedule a pod, by how they ended: scheduled, unschedulable (no node for it) or error.",
            self._attempts.counted,
            ("result", "profile"),
        )
        self._algorithm = Histograms(
            "scheduler_scheduling_algorithm_duration_seconds",
            "How long choosing a node took, binding left out.",
            _LATENCY,
        )
        self._sli = Histograms(
            "scheduler_pod_scheduling_sli_duration_seconds",
            "From when a pod could first be tried until it was bound, by the number of attempts it took.",
            _LONG,
            ("attempts",),
        )
        self._attempts_needed = Histograms(
            "scheduler_pod_scheduling_attempts",
            "Attempts that pods needed until they were bound.",
            exponential(1, 2, 5),
        )
        self._after_flush = Counters(
            "scheduler_pod_scheduled_after_flush_total",
            "Pods bound after nothing but a long wait brought them back: some event may have gone unheard.",
        )
        self._points = Histograms(
            "scheduler_framework_extension_point_duration_seconds",
            "How long the plugins of an extension point took together.",
            _SHORT,
            ("extension_point", "status", "profile"),
        )
        self._plugins = Histograms(
            "scheduler_plugin_execution_duration_seconds",
            "How long one plugin took at an extension point, in one attempt out of ten.",
            _TINY,
            ("plugin", "extension_point", "status"),
        )
        self._node_hints = Histograms(
            "scheduler_get_node_hint_duration_seconds",
            "How long looking for a node took that the pod before leaves to one like it.",
            _HINT,
            ("hinted", "profile"),
        )
        self._stores = Histograms(
            "scheduler_store_schedule_results_duration_seconds",
            "How long keeping the scores of a pod for the next took.",
            _HINT,
            ("profile",),
        )
        self._entries = Counters(
            "scheduler_queue_incoming_pods_total",
            "Pods that entered a part of the scheduling queue, by the event that sent them there.",
            ("queue", "event"),
        )
        self._handling = Histograms(
            "scheduler_event_handling_duration_seconds", "How long taking in an event took.", _SHORT, ("event",)
        )
        self._hints = Histograms(
            "scheduler_queueing_hint_execution_duration_seconds",
            "How long a plugin took to say whether an event is worth a new attempt.",
            _TINY,
            ("plugin", "event", "hint"),
        )
        self._permit = Histograms(
            "scheduler_permit_wait_duration_seconds", "How long pods were held at Permit.", _LATENCY, ("result",)
        )
        self._groups = Histograms(
            "scheduler_podgroup_scheduling_attempt_duration_seconds",
            "How long attempts to schedule a pod group took.",
            _LATENCY,
            ("result", "profile"),
        )
        self._groups_counted = ReadFamily(
            counters,
            "scheduler_podgroup_schedule_attempts_total",
            "Attempts to schedule a pod group, by how they ended.",
            self._groups.counted,
            ("result", "profile"),
        )
        self._group_algorithm = Histograms(
            "scheduler_podgroup_scheduling_algorithm_duration_seconds",
            "How long choosing nodes for a pod group took.",
            _LATENCY,
            hidden_while_empty=True,
        )
        self._preemptions = Counters(
            "scheduler_preemption_attempts_total", "Attempts to make room for a pod by evicting others."
        )
        self._victims = Histograms(
            "scheduler_preemption_victims", "Pods evicted to make room for one.", exponential(1, 2, 7)
        )
        self._evictions = Counters(
            "scheduler_preemption_goroutines_execution_total", "Rounds of evictions carried out.", ("result",)
        )
        self.eviction_seconds = Histograms(
            "scheduler_preemption_goroutines_duration_seconds",
            "How long a round of evictions took.",
            _LONG,
            ("result",),
        )
        self._evaluations = ReadFamily(
            counters,
            "scheduler_plugin_evaluation_total",
            "Decisions that rest on what a plugin said at an extension point.",
            self._count_evaluations,
            ("plugin", "extension_point", "profile"),
        )
        self._decision, self._needed = self._algorithm.of().observe, self._attempts_needed.of().observe
        self._scheduled: dict[str, Observe] = {}
        self._bound_after = [self._sli.of(_attempts_label(number)).observe for number in range(MANY_ATTEMPTS + 1)]
        self._handled: dict[Event, Observe] = {}
        self._events: list[Event] = []
        self.families: list[MetricFamily] = [each for each in vars(self).values() if isinstance(each, FAMILIES)]

    def for_profile(self, scheduler_name: str) -> ProfileMetricsTimer:
        timer = ProfileMetricsTimer(
            scheduler_name, self._now, self._points, self._plugins, self._node_hints, self._stores
        )
        self._profiles[scheduler_name] = timer
        self._scheduled[scheduler_name] = self._attempts.of("scheduled", scheduler_name).observe
        return timer

    def _tidy(self) -> None:
        """Bound what observations gather."""
        self._gathered += 1
        if self._gathered >= FOLDED_AFTER:
            self._gathered = 0
            for family in self.families:
                if isinstance(family, Histograms):
                    family.fold()

    # One attempt

    def time_attempt(self, run: Callable[[QueuedPod, T], None], queued: QueuedPod, by: T) -> None:
        self._deciding = queued
        began = queued.began = self._now()
        if began >= self._next_sample and self._rng.random() < SAMPLED:
            self._next_sample = began + SAMPLES_APART
            self._sampled = self._profiles[queued.pod.spec.scheduler_name]
            self._sampled.sampled = True
        try:
            run(queued, by)
        finally:
            self._deciding = None
            if self._sampled is not None:
                self._sampled.sampled = False
                self._sampled = None
            self._tidy()

    def decided(self, queued: QueuedPod) -> None:
        self._deciding = None
        self._decision(self._now() - queued.began)

    def scheduled(self, queued: QueuedPod) -> None:
        attempts = queued.attempts
        self._scheduled[queued.pod.spec.scheduler_name](self._now() - queued.began)
        self._needed(attempts)
        if queued.initial_attempt is not None:
            self._bound_after[min(attempts, MANY_ATTEMPTS)](self._clock.now() - queued.initial_attempt)
        if queued.flushed:
            self._after_flush.add()

    def failed(self, queued: QueuedPod, *, rejected: bool) -> None:
        seconds = self._now() - queued.began
        if queued is self._deciding:  # and not one whose binding failed meanwhile
            self._deciding = None
            self._decision(seconds)
        result = "unschedulable" if rejected else "error"
        self._attempts.of(result, queued.pod.spec.scheduler_name).observe(seconds)

    # Beside attempts

    def entered(self, queue: str, event: str, members: int = 0) -> None:
        for _ in range(members or 1):
            self._entries.add(queue, event)
        if members:
            self._group_entries[queue, event, "podgroup"] += 1
            self._stays[queue, event] += members

    def stayed(self, queue: str, event: str, members: int = 0) -> None:
        for _ in range(members or 1):
            self._entries.add(queue, event)
        self._stays[queue, event] += members or 1

    def entities_entered(self) -> Reading:
        """The same for entities, which are pods and pod groups, and count where they change their queue."""
        counted = {
            (queue, event, "pod"): number - self._stays[queue, event]
            for (queue, event), number in self._entries.counted().items()
        }
        return {labels: number for labels, number in (counted | self._group_entries).items() if number}

    def time_intake(self, run: Callable[[T], None], change: T) -> None:
        began = self._now()
        run(change)
        if self._events:
            self._record_events(self._now() - began)

    def event(self, event: Event) -> None:
        self._events.append(event)

    def _record_events(self, seconds: float) -> None:
        for event in self._events:
            observe = self._handled.get(event)
            if observe is None:
                observe = self._handled[event] = self._handling.of(event.label).observe
            observe(seconds)
        self._events.clear()
        self._tidy()

    def waited(self, code: Code, seconds: float) -> None:
        self._permit.of(CODE_NAMES[code]).record(seconds)

    def group_decided(self, queued: QueuedPod) -> None:
        self._group_algorithm.of().record(self._now() - queued.began)

    def group_tried(self, queued: QueuedPod, result: str) -> None:
        self._groups.of(result, queued.pod.spec.scheduler_name).record(self._now() - queued.began)

    def preemption_attempted(self) -> None:
        self._preemptions.add()

    def preempting(self, victims: int) -> Done:
        began = self._now()
        self._victims.of().record(victims)

        def over(error: str | None) -> None:
            result = "success" if error is None else "error"
            self._evictions.add(result)
            self.eviction_seconds.of(result).record(self._now() - began)

        return over

    def timed_hint(self, plugin: str, event: str, hint: Hint | None) -> Hint:
        now = self._now
        queue, skip, error = (self._hints.of(plugin, event, code).record for code in ("Queue", "QueueSkip", "Error"))

        def ask(pod: Pod, before: object, after: object) -> bool:
            began = now()
            try:
                answer = hint is None or hint(pod, before, after)
            except Exception:  # whatever the plugin raises is counted and raised again
                error(now() - began)
                raise
            (queue if answer else skip)(now() - began)
            return answer

        return ask

    def _count_evaluations(self) -> Reading:
        return {
            (plugin, point, profile): number
            for profile, timer in self._profiles.items()
            for (plugin, point), number in timer.evaluations().items()
        }


FAMILIES = (Counters, Histograms, ReadFamily)


def _attempts_label(number: int) -> str:
    return str(number) if number < MANY_ATTEMPTS else f"{MANY_ATTEMPTS}+"
