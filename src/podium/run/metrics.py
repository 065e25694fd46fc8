"""Collects everything `/metrics` of a scheduler shows.

Under `scheduler_` stands what kube-scheduler says under these names, with its labels and buckets, and the names are
those of the Kubernetes minor whose rules are used. The members of a pod group are queued one by one here, so that each
counts as an entity of type pod. What only Podium has to say stands under `podium_`.

    metrics = Metrics(clock, now=time.perf_counter)
    scheduler = Scheduler(…, Driver(…, timer=metrics.timer), …)
    metrics.attach(scheduler)
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from itertools import islice

from kubecel.quantity import NANO
from podium.engine.scheduler import Scheduler
from podium.framework.clock import Clock
from podium.framework.waiting import DeviceWait
from podium.kube import Pod
from podium.kube.requests import Nanos, exact_limits, exact_requests
from podium.run.engine_metrics import MetricsTimer
from podium.serving.families import (
    Counters,
    Histograms,
    Labels,
    MetricFamily,
    ReadFamily,
    Reading,
    counters,
    exponential,
    gauges,
)
from podium.serving.process_metrics import ProcessMetrics, plugin_families

PIECE = 100
"""Pods to a piece: about a millisecond."""

_REQUEST = "kube_pod_resource_request"
_LIMIT = "kube_pod_resource_limit"
_TEXTS = {
    _REQUEST: "What pods request, by resource, as scheduler and kubelet count it.",
    _LIMIT: "What pods are limited to, by resource, as scheduler and kubelet count it.",
}
_UNITS = {"cpu": "cores", "memory": "bytes", "storage": "bytes", "ephemeral-storage": "bytes"}
_ENDED = ("Succeeded", "Failed")


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
        if scheduler.rules.counts_queued_entities:
            self.families += _of_entities(scheduler, self.timer)
            self.families.remove(self.timer.eviction_seconds)  # deprecated by 1.37, which no longer shows it
        self.families.append(self.claims.creates_family(with_owner=scheduler.rules.claim_creates_say_the_owner))
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
        numbers: dict[Labels, float] = {(name,): number for name, number in queue.pending()._asdict().items()}
        outside = queue.outside() if scheduler.rules.counts_queued_entities else {}
        return numbers | {(name,): number for name, number in outside.items()}

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


def _of_entities(scheduler: Scheduler, timer: MetricsTimer) -> list[MetricFamily]:
    """From Kubernetes 1.37 on."""

    def queued() -> Reading:
        return {labels: number for labels, number in scheduler.queue.entities().items()}  # noqa: C416 (see above)

    return [
        ReadFamily(
            gauges,
            "scheduler_queued_entities",
            "Pods and pod groups that wait, by the part of the queue they are in (from 1.37 on).",
            queued,
            ("queue", "type"),
        ),
        ReadFamily(
            counters,
            "scheduler_queue_incoming_entities_total",
            "Pods and pod groups that entered another part of the queue, by the event that sent them (from 1.37 on).",
            timer.entities_entered,
            ("queue", "event", "type"),
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

    def rescores() -> Reading:
        return {(name,): batch.rescores for name, batch in batches.items() if batch.rescores}

    since_1_37 = [
        ReadFamily(
            counters,
            "scheduler_batch_rescore_attempts_total",
            "Times that the node of the last pod was scored again for the next (from 1.37 on).",
            rescores,
            ("profile",),
        )
    ]
    return [
        *(since_1_37 if scheduler.rules.batches_score_the_last_node_again else ()),
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


class ClaimMetrics:
    """kube-scheduler's metrics of claims."""

    def __init__(self) -> None:
        self._creates: dict[str, int] = {}
        self._allocations = Counters(
            "scheduler_dra_bindingconditions_allocations_total",
            "Devices that had to be attached before a pod was bound, by how that ended.",
            ("profile", "driver", "status"),
        )
        self._seconds = Histograms(
            "scheduler_dra_bindingconditions_wait_duration_seconds",
            "How long pods waited for devices to be attached.",
            exponential(0.1, 2, 14),
            ("profile", "driver", "status"),
        )
        self.families: list[MetricFamily] = [self._allocations, self._seconds]

    def creates_family(self, *, with_owner: bool) -> MetricFamily:
        """The claims created, under the name and with the labels that the minor has for them."""
        if with_owner:
            return ReadFamily(
                counters,
                "dynamic_resource_allocation_resourceclaim_creates_total",
                "Claims that the scheduler created, or could not (from 1.37 on).",
                lambda: {(status, "false", "", "Pod"): number for status, number in self._creates.items()},
                ("status", "admin_access", "owner_api_group", "owner_api_kind"),
            )
        return ReadFamily(
            counters,
            "scheduler_resourceclaim_creates_total",
            "Claims that the scheduler created, or could not (up to 1.36).",
            lambda: {(status,): number for status, number in self._creates.items()},
            ("status",),
        )

    def created(self, *, success: bool) -> None:
        status = "success" if success else "failure"
        self._creates[status] = self._creates.get(status, 0) + 1

    def waited(self, wait: DeviceWait) -> None:
        for driver in wait.drivers:
            self._seconds.of(wait.profile, driver, wait.status).observe(wait.seconds)
        for driver in wait.awaited:
            self._allocations.add(wait.profile, driver, wait.status)


async def resource_metrics(pods: Callable[[], Iterable[Pod]], leads: Callable[[], bool]) -> AsyncIterator[bytes]:
    """The text in pieces; nothing when this process does not lead.

    Writes `/metrics/resources`: what every pod requests and is limited to, one line for each resource.

    Kept apart from `/metrics` because it grows with the cluster, and shown by the leader only, so that a cluster's
    numbers are there once. It is written piece by piece: at 50,000 pods the whole of it is seconds of work, and the
    scheduler has other things to do. As in kube-scheduler, a pod that has ended on its node counts for nothing, and
    zeros are left out.
    """
    if not leads():
        return
    counted = [pod for pod in pods() if not (pod.node_name and pod.status.phase in _ENDED)]
    for name, amounts_of in ((_REQUEST, exact_requests), (_LIMIT, exact_limits)):
        head = f"# HELP {name} {_TEXTS[name]}\n# TYPE {name} gauge\n"
        rest = iter(counted)
        while piece := list(islice(rest, PIECE)):
            text = "".join(line for pod in piece for line in _lines(name, pod, amounts_of(pod)))
            if text:
                yield (head + text).encode()
                head = ""


def _lines(name: str, pod: Pod, amounts: Nanos) -> Iterator[str]:
    priority = "" if pod.spec.priority is None else pod.spec.priority
    about = (
        f'{name}{{namespace="{pod.namespace}",pod="{pod.name}",node="{pod.node_name}",'
        f'scheduler="{_escaped(pod.spec.scheduler_name)}",priority="{priority}"'
    )
    for resource, amount in amounts.items():
        if amount:
            yield f'{about},resource="{resource}",unit="{unit_of(resource)}"}} {amount / NANO}\n'


def _escaped(name: str) -> str:
    """Of the names, only a scheduler's may hold anything."""
    return name.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def unit_of(resource: str) -> str:
    if resource.startswith("hugepages-"):
        return "bytes"
    if resource.startswith("attachable-volumes-"):
        return "integer"
    return _UNITS.get(resource, "")
