"""What the engine's observer makes of what it is told: kube-scheduler's metrics about attempts, queue and plugins.

Names, labels and buckets are kube-scheduler's, so that its dashboards and alerts work. Where Podium works another way,
a number says what is true of Podium:

- A pod decided by kept answers has one Filter and one Score observation for the part that was asked anew, and none of
  PreFilter and PreScore, which did not run as such.
- Filter and Score see all nodes at once, so a plugin's execution is observed, and its evaluation counted, once for a
  decision and not once for every node; a plugin whose kept answer stands counts as evaluated, as the decision rests on
  what it said.
- A gated pod's PreEnqueue has the status of the plugin that gates it; and the time evictions take ends when they do.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Sequence

from podium.config.points import Point
from podium.framework.clock import Clock
from podium.framework.events import Event, Hint
from podium.framework.observer import Done
from podium.framework.profile import ProfileRuntime
from podium.framework.queued import QueuedPod
from podium.framework.status import Code
from podium.kube import Pod
from podium.live.metrics.plugin_timing import PluginTiming
from podium.serving.families import Counters, Histograms, MetricFamily, ReadFamily, Reading, counters, exponential

SAMPLED = 0.1
"""The share of attempts in which plugins are timed one by one."""
SAMPLES_APART = 0.02
"""Seconds between two such attempts, at least: when thousands of pods come, fewer than one in ten tell enough."""

MANY_ATTEMPTS = 15
FOLDED_AFTER = 2000
"""Attempts and events after which what was observed of them is sorted into buckets."""

Observe = Callable[[float], None]

CODE_NAMES = {
    Code.SUCCESS: "Success",
    Code.ERROR: "Error",
    Code.UNSCHEDULABLE: "Unschedulable",
    Code.UNRESOLVABLE: "UnschedulableAndUnresolvable",
    Code.WAIT: "Wait",
    Code.SKIP: "Skip",
    Code.PENDING: "Pending",
}

POINTS = (
    "PreEnqueue", "PreFilter", "Filter", "PostFilter", "PreScore", "Score", "Reserve", "Unreserve", "Permit",
    "PreBindPreFlight", "PreBind", "Bind", "PostBind",
)  # fmt: skip

_LATENCY = exponential(0.001, 2, 15)
_SHORT = exponential(0.0001, 2, 12)
_LONG = exponential(0.01, 2, 20)
_TINY = exponential(0.00001, 1.5, 20)


class EngineObserver:
    """A `podium.framework.observer.Observer`. `now` is its stopwatch, `clock` the engine's clock."""

    def __init__(self, clock: Clock, now: Callable[[], float], rng: random.Random) -> None:
        self.now = now
        self._clock = clock
        self._rng = rng
        self._watches: dict[str, ProfileWatch] = {}
        self._deciding: QueuedPod | None = None
        self._next_sample = 0.0
        self._sampled: ProfileWatch | None = None
        self._gathered = 0
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
        self._preemptions = Counters(
            "scheduler_preemption_attempts_total", "Attempts to make room for a pod by evicting others."
        )
        self._victims = Histograms(
            "scheduler_preemption_victims", "Pods evicted to make room for one.", exponential(1, 2, 7)
        )
        self._evictions = Counters(
            "scheduler_preemption_goroutines_execution_total", "Rounds of evictions carried out.", ("result",)
        )
        self._eviction_seconds = Histograms(
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
        self.families: list[MetricFamily] = [each for each in vars(self).values() if isinstance(each, FAMILIES)]

    def watch(self, runtime: ProfileRuntime) -> ProfileWatch:
        watch = self._watches[runtime.name] = ProfileWatch(runtime, self.now, self._points, self._plugins)
        self._scheduled[runtime.name] = self._attempts.of("scheduled", runtime.name).observe
        return watch

    def _tidy(self) -> None:
        """Bound what observations gather."""
        self._gathered += 1
        if self._gathered >= FOLDED_AFTER:
            self._gathered = 0
            for family in self.families:
                if isinstance(family, Histograms):
                    family.fold()

    # One attempt

    def began(self, queued: QueuedPod) -> None:
        self._deciding = queued
        now = queued.began = self.now()
        if now >= self._next_sample and self._rng.random() < SAMPLED:
            self._next_sample = now + SAMPLES_APART
            self._sampled = self._watches[queued.pod.spec.scheduler_name]
            self._sampled.sample()

    def decided(self, queued: QueuedPod) -> None:
        self._deciding = None
        self._decision(self.now() - queued.began)

    def paused(self, _queued: QueuedPod) -> None:
        self._deciding = None
        if self._sampled is not None:
            self._sampled.sample_no_more()
            self._sampled = None
        self._tidy()

    def scheduled(self, queued: QueuedPod) -> None:
        attempts = queued.attempts
        self._scheduled[queued.pod.spec.scheduler_name](self.now() - queued.began)
        self._needed(attempts)
        if queued.initial_attempt is not None:
            self._bound_after[min(attempts, MANY_ATTEMPTS)](self._clock.now() - queued.initial_attempt)
        if queued.flushed:
            self._after_flush.add()

    def failed(self, queued: QueuedPod, *, rejected: bool) -> None:
        seconds = self.now() - queued.began
        if queued is self._deciding:  # and not one whose binding failed meanwhile
            self._deciding = None
            self._decision(seconds)
        result = "unschedulable" if rejected else "error"
        self._attempts.of(result, queued.pod.spec.scheduler_name).observe(seconds)

    # Beside attempts

    def entered(self, place: str, event: str) -> None:
        self._entries.add(place, event)

    def heard(self, events: Sequence[Event], began: float) -> None:
        seconds = self.now() - began
        for event in events:
            observe = self._handled.get(event)
            if observe is None:
                observe = self._handled[event] = self._handling.of(event.label).observe
            observe(seconds)
        self._tidy()

    def waited(self, code: Code, seconds: float) -> None:
        self._permit.of(CODE_NAMES[code]).record(seconds)

    def preemption_attempted(self) -> None:
        self._preemptions.add()

    def preempting(self, victims: int) -> Done:
        began = self.now()
        self._victims.of().record(victims)

        def over(error: str | None) -> None:
            result = "success" if error is None else "error"
            self._evictions.add(result)
            self._eviction_seconds.of(result).record(self.now() - began)

        return over

    def timed_hint(self, plugin: str, event: str, hint: Hint | None) -> Hint:
        now = self.now
        queue, skip, error = (self._hints.of(plugin, event, said).record for said in ("Queue", "QueueSkip", "Error"))

        def ask(pod: Pod, before: object, after: object) -> bool:
            began = now()
            try:
                answer = hint is None or hint(pod, before, after)
            except Exception:
                error(now() - began)
                raise
            (queue if answer else skip)(now() - began)
            return answer

        return ask

    def _count_evaluations(self) -> Reading:
        return {
            (plugin, point, profile): number
            for profile, watch in self._watches.items()
            for (plugin, point), number in watch.evaluations().items()
        }


FAMILIES = (Counters, Histograms, ReadFamily)


class ProfileWatch:
    """A `podium.framework.observer.Stopwatch`."""

    def __init__(
        self, runtime: ProfileRuntime, now: Callable[[], float], points: Histograms, plugins: Histograms
    ) -> None:
        self.now = now
        self.sampled = False
        self._runtime = runtime
        self._plugins = plugins
        self.took = {
            point: [points.of(point, CODE_NAMES[code], runtime.name).observe for code in Code] for point in POINTS
        }
        self._evaluations: dict[str, dict[tuple[str, ...], int]] = {
            point: {} for point in ("PreFilter", "Filter", "PreScore", "Score")
        }
        self._timing = PluginTiming(runtime.plugins.values(), now, self.plugin_took)

    def evaluated(self, point: str, skipped: Collection[str]) -> None:
        counted, kind = self._evaluations[point], tuple(skipped)  # in whatever order: they are summed up later
        counted[kind] = counted.get(kind, 0) + 1

    def plugin_took(self, plugin: str, point: str, code: Code, began: float) -> None:
        self._plugins.of(plugin, point, CODE_NAMES[code]).observe(self.now() - began)

    def sample(self) -> None:
        """Time plugins one by one from here on."""
        self.sampled = True
        self._timing.start()

    def sample_no_more(self) -> None:
        self.sampled = False
        self._timing.stop()

    def evaluations(self) -> dict[tuple[str, str], int]:
        """(plugin, extension point) → decisions that rest on it."""
        numbers: dict[tuple[str, str], int] = {}
        for point, counted in self._evaluations.items():
            for plugin in self._runtime.at(Point(point[0].lower() + point[1:])):
                name = plugin.name
                numbers[name, point] = sum(number for skipped, number in counted.items() if name not in skipped)
        return numbers


def _attempts_label(number: int) -> str:
    return str(number) if number < MANY_ATTEMPTS else f"{MANY_ATTEMPTS}+"
