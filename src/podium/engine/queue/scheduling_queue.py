"""Decides which pod is tried next.

A pod is in one of three queues: active (to be tried, in the order of QueueSort), backing off (failed, must wait a
while), or unschedulable (nothing has changed that could help it, or a PreEnqueue plugin holds it back); or it is in
flight, being tried. Events in the cluster bring pods back from unschedulable; so do `activate`, an
update of the pod itself and, in the end, mere time.

Nothing here waits or sleeps. `pop` gives None when no pod is ready, and `tick` does what is due: pods whose backoff
is over move up every second, pods forgotten for five minutes every thirty seconds; `next_timer` says when that would
be of use.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from podium.cluster.objects import Store
from podium.engine.changes import pod_events
from podium.engine.queue.group_entities import ATTEMPT_FAILED, INCOMPLETE, PENDING, GroupEntities
from podium.engine.queue.heap import Sorter
from podium.engine.queue.in_flight import InFlight
from podium.engine.queue.queueing_hints import Hints, Listeners, Strategy
from podium.engine.queue.sub_queues import (
    ACTIVE,
    BACKOFF,
    OLD_POD_ADD,
    OLD_POD_UPDATE,
    POD_ADD,
    UNSCHEDULABLE,
    OnMove,
    QueuePlugins,
    QueueSettings,
    SubQueues,
)
from podium.engine.queue.unschedulable_pods import UnschedulableFlush, WakeTimes, last_tried
from podium.framework.clock import Clock
from podium.framework.events import FORCE_ACTIVATE, PLUGIN_TIMER, UNSCHEDULABLE_TIMEOUT, Event, Interest, Resource
from podium.framework.nominator import Nominator
from podium.framework.queued import QueuedGroup, QueuedPod
from podium.framework.status import Status
from podium.framework.timer import UNTIMED, Timer
from podium.kube import Pod, PodGroup

BACKOFF_COMPLETE = "BackoffComplete"


class Pending(NamedTuple):
    """How many pods are where; gated pods are not counted as unschedulable."""

    active: int
    backoff: int
    unschedulable: int
    gated: int


class SchedulingQueue:
    def __init__(
        self,
        sorter: Sorter,
        clock: Clock,
        nominator: Nominator,
        plugins: QueuePlugins,
        settings: QueueSettings,
        timer: Timer = UNTIMED,
        queued_groups: Store[PodGroup] | None = None,
    ) -> None:
        """With `queued_groups`, the known PodGroups, each group is one entity."""
        named = settings.names_own_changes
        self._nominates_gated = settings.nominates_gated
        self._own = Resource.TARGET_POD if named else Resource.UNSCHEDULABLE_POD
        self._pod_add, self._pod_update = (POD_ADD, POD_ADD) if named else (OLD_POD_ADD, OLD_POD_UPDATE)
        self._pod_groups = settings.members_back_off
        self._clock = clock
        self._nominator = nominator
        self._hints = Hints(plugins.hints, timer, plugins.on_failure)
        self._queues = SubQueues(sorter, clock, nominator, plugins, self._hints.concerns, settings, timer)
        self._groups = None if queued_groups is None else GroupEntities(self._queues, queued_groups, self._pod_add)
        self._sequence = 0
        self._flush = UnschedulableFlush(clock.now(), settings.max_in_unschedulable)
        self._wake_times = WakeTimes()
        self.in_flight = InFlight()
        self.cycles = 0
        """How many pods have been popped."""

    # What happens to pods

    def add(self, pod: Pod) -> None:
        """A new pod without a node."""
        if self._nominates_gated:
            self._nominator.nominate(pod)
        self._enter(pod, self._pod_add)

    def _enter(self, pod: Pod, label: str) -> None:
        if self._groups is not None and pod.spec.scheduling_group is not None:
            self._groups.add(self._new(pod))
        else:
            self._queues.to_active(self._new(pod), label)

    def update(self, before: Pod, after: Pod) -> None:
        """A pod without a node changed. One in flight will be shown the change if it fails."""
        if after.uid in self.in_flight:
            for event in pod_events(before, after, self._own):
                self.in_flight.record(self._hints.listeners(event), before, after)
            return
        queued = self.get(after.key)
        if queued is None:
            self._enter(after, self._pod_update)
            return
        queued.pod = after
        self._renominate(before, after)
        queued = self._entity(after)
        if queued is not None and not self._resort(queued):
            for event in pod_events(before, after, self._own):
                listeners = self._hints.listeners(event)
                strategy = self._hints.strategy(queued, listeners, before, after)
                self._queues.requeue(queued, strategy, listeners.label)
                if queued.queue != UNSCHEDULABLE:
                    break

    def delete(self, pod: Pod) -> None:
        """The pod is gone or has a node; one in flight is given up by the cycle that tries it."""
        self._nominator.remove(pod.uid)
        self._wake_times.drop(pod.key)
        queued = self._queues.get(pod.key)
        if queued is not None:
            self._queues.take_out(queued)
        elif self._groups is not None:
            self._groups.remove(pod)

    def pop(self) -> QueuedPod | None:
        """The next pod or pod group to try, now in flight; None when none is ready. An idle scheduler cuts backoffs
        short."""
        while (queued := self._queues.pop()) is not None:
            queued.attempts += 1
            if isinstance(queued, QueuedGroup):
                assert self._groups is not None
                self._groups.begin(queued)
                queued.set_members([member for member in queued.members if self.in_flight.start(member.pod)])
                started = queued.group_size > 0
            else:
                started = self.in_flight.start(queued.pod)
            if started:
                self.cycles += 1
                return queued
        return None

    def group_tried(self, group: QueuedGroup, status: Status | None) -> None:
        """The attempt on a pod group is over (None: it was scheduled); what is left of it comes back."""
        assert self._groups is not None
        self._groups.end(group, status, self._clock.now(), self._next_sequence)

    def take(self, keys: Iterable[str]) -> list[QueuedPod]:
        """Take out pods, wherever they wait, to be tried together with one that was popped: now in flight as well."""
        taken = []
        for key in keys:
            queued = self._queues.get(key)
            if queued is not None and not queued.gated:
                self._queues.take_out(queued)
                queued.attempts += 1
                if self.in_flight.start(queued.pod):
                    self.cycles += 1
                    taken.append(queued)
        return taken

    def take_active(self, keys: Iterable[str]) -> list[QueuedPod]:
        """The same by way of the active queue: pods that a PreEnqueue plugin holds back come along if it no longer
        does."""
        keys = list(keys)
        for key in keys:
            queued = self._queues.get(key)
            if queued is not None and queued.queue != ACTIVE:
                self._queues.to_active(queued, FORCE_ACTIVATE.label)
        return self.take(keys)

    def done(self, uid: str) -> None:
        """The pod is placed, or will not come back by `add_unschedulable`."""
        self.in_flight.finish(uid)

    def add_unschedulable(self, queued: QueuedPod) -> bool:
        """Take back a pod that failed, with the plugins that rejected it noted; none noted means an error.

        What happened while it was in flight may send it straight back. False when the pod is queued already.
        """
        known = self.get(queued.key)
        if known is None:
            if queued.unschedulable_plugins or queued.pending_plugins:
                queued.unschedulable_count += 1
                queued.consecutive_errors = 0
            else:
                queued.consecutive_errors += 1
            queued.timestamp, queued.sequence = self._clock.now(), self._next_sequence()
            queued.backoff_expiration = None
            queued.flushed, queued.flushed_at = False, 0.0
            if self._groups is not None and queued.pod.spec.scheduling_group is not None:
                self._groups.add(queued)
            else:
                self._queues.requeue(queued, self._strategy_after_flight(queued), ATTEMPT_FAILED)
        self.done(queued.pod.uid)
        return known is None

    # What brings pods back

    def on_event(
        self, event: Event, before: Any = None, after: Any = None, *, precheck: Callable[[Pod], bool] | None = None
    ) -> bool:
        """Something in the cluster changed; whether that brought a pod back. `precheck` leaves out waiting pods."""
        listeners = self._hints.listeners(event)
        if not listeners.wildcard and not listeners.plugins:
            return False
        waiting: list[Collection[QueuedPod]]
        if listeners.wildcard:
            waiting = [[queued] for queued in self._queues.unschedulable]
        else:
            waiting = self._queues.unschedulable.waiting_for(listeners, before, after)
        if precheck is not None:
            waiting = [[queued for queued in equal if precheck(queued.pod)] for equal in waiting]
        return self._wake(waiting, listeners, before, after)

    def activate(self, pods: Iterable[Pod]) -> None:
        """Try these pods next, whatever they wait for. One in flight comes back at once if it fails."""
        for pod in pods:
            queued = self._entity(pod)
            if queued is not None and queued.queue != ACTIVE and self._queues.to_active(queued, FORCE_ACTIVATE.label):
                continue
            if pod.uid in self.in_flight:
                self.in_flight.record(self._hints.listeners(FORCE_ACTIVATE), None, pod)

    def resort(self, pods: Iterable[Pod]) -> None:
        """Put pods where QueueSort has them now; those that wait for an event wait on."""
        for pod in pods:
            queued = self._entity(pod)
            if queued is not None:
                self._resort(queued)

    def _resort(self, queued: QueuedPod) -> bool:
        """Whether the pod is in a queue that has an order."""
        if queued.queue == ACTIVE:
            self._queues.active.push(queued)
        elif queued.queue == BACKOFF:
            self._queues.backoff.resort(queued)
        else:
            return False
        return True

    def wake_at(self, pod: Pod, when: float) -> None:
        """Have a pod tried again at a time, if it is unschedulable by then."""
        self._wake_times.set(pod.key, when)

    def _wake_by_time(self) -> None:
        for key in self._wake_times.due(self._clock.now()):
            queued = self._queues.get(key)
            if queued is not None and queued.queue == UNSCHEDULABLE and not queued.gating_plugin:
                self._queues.take_out(queued)
                self._queues.requeue(queued, Strategy.AFTER_BACKOFF, PLUGIN_TIMER.label)

    def flush_backoff(self) -> None:
        """Make pods active whose backoff is over."""
        for queued in self._queues.backoff.completed():
            self._queues.to_active(queued, BACKOFF_COMPLETE)

    def flush_unschedulable(self) -> None:
        """Give pods another chance that nothing has woken for too long: a hint may have missed something."""
        self._flush_unschedulable(self._clock.now())

    def _flush_unschedulable(self, looked_at: float) -> None:
        waiting = self._queues.unschedulable.older_than(self._flush.longest, looked_at)
        now = self._clock.now()
        for queued in waiting:
            queued.flushed, queued.flushed_at = True, now
        if waiting:
            self._wake([[queued] for queued in waiting], self._hints.listeners(UNSCHEDULABLE_TIMEOUT), None, None)

    def tick(self) -> None:
        """Do what is due by now; to be called every whole second, or whenever `next_timer` says."""
        self.flush_backoff()
        self._wake_by_time()
        flush_due = self._flush.last_due(self._clock.now())
        if flush_due is not None:
            self._flush_unschedulable(flush_due)

    def next_timer(self) -> float | None:
        """The first time at which `tick` would move a pod, as things are; None when it never would."""
        times = [self._queues.backoff.next_completion(), self._wake_times.first()]
        oldest = self._queues.unschedulable.oldest()
        if oldest is not None:
            times.append(self._flush.first_that_flushes(oldest))
        return min((time for time in times if time is not None), default=None)

    # What can be seen

    def follow(self, on_move: OnMove) -> None:
        """Call a function with every pod that enters one of the queues."""
        self._queues.on_move = on_move

    @property
    def ready(self) -> bool:
        """Whether `pop` would give a pod."""
        return len(self._queues.active) > 0 or self._queues.backoff.rejected > 0

    def pending(self) -> Pending:
        counts = self._entities()
        for group in self._queued_groups():
            counts["gated" if group.gated else group.queue] += group.group_size - 1
        return Pending(**counts)

    def entities(self) -> dict[tuple[str, str], int]:
        """By queue and kind ("pod", "podgroup"): how many pods that are none of a group, and how many groups."""
        counts = {(queue, "pod"): number for queue, number in self._entities().items()}
        for group in self._queued_groups():
            queue = "gated" if group.gated else group.queue
            counts[queue, "pod"] -= 1
            counts[queue, "podgroup"] = counts.get((queue, "podgroup"), 0) + 1
        return counts

    def _entities(self) -> dict[str, int]:
        queues = self._queues
        gated = queues.unschedulable.gated
        return {
            ACTIVE: len(queues.active),
            BACKOFF: len(queues.backoff),
            UNSCHEDULABLE: len(queues.unschedulable) - gated,
            "gated": gated,
        }

    def _queued_groups(self) -> Iterator[QueuedGroup]:
        for queued in () if self._groups is None else self._queues:
            if isinstance(queued, QueuedGroup):
                yield queued

    def outside(self) -> dict[str, int]:
        """How many members of pod groups wait outside of the queue: for their group (incomplete), or for the end of the
        attempt at it (pending)."""
        found = [] if self._groups is None else [member.queue for member in self._groups.outside()]
        return {queue: found.count(queue) for queue in (INCOMPLETE, PENDING)}

    def rejections(self) -> dict[tuple[str, str], int]:
        """(plugin, profile) → how many of the pods here it turned away when they were last tried."""
        counted: dict[tuple[str, str], int] = {}
        woken = ((queued, 1) for queue in (self._queues.active, self._queues.backoff) for queued in queue)
        waiting = (*self._queues.unschedulable.rejections(), *woken)
        for queued, number in ((member, number) for entity, number in waiting for member in entity.members):
            if queued.unschedulable_plugins or queued.pending_plugins:
                for plugin in queued.unschedulable_plugins | queued.pending_plugins:
                    labels = (plugin, queued.pod.spec.scheduler_name)
                    counted[labels] = counted.get(labels, 0) + number
        return counted

    def get(self, key: str) -> QueuedPod | None:
        """The record of a queued pod by "namespace/name"; its `queue` says where it is."""
        queued = self._queues.get(key)
        return queued if queued is not None or self._groups is None else self._groups.get(key)

    def _entity(self, pod: Pod) -> QueuedPod | None:
        """What moves from queue to queue for a pod: itself or its group; None where it is in none."""
        queued = self._queues.get(pod.key)
        return queued if queued is not None or self._groups is None else self._groups.entity_of(pod)

    def next_try(self, queued: QueuedPod) -> float | None:
        """When time alone brings the pod to its next attempt, or has done so; None for one that is gated."""
        queued = self._entity(queued.pod) or queued
        if queued.gated or queued.queue in (INCOMPLETE, PENDING):
            return None
        if queued.queue == BACKOFF:
            return self._queues.backoff.expiration(queued) + 1
        if queued.queue != UNSCHEDULABLE:
            return self._clock.now()
        flushed = self._flush.first_that_flushes(last_tried(queued))
        wanted = self._wake_times.of(queued.key)
        return flushed if wanted is None else min(flushed, wanted)

    def waits_for(self, queued: QueuedPod) -> dict[str, Sequence[Interest]]:
        """The plugins that keep the pod out, each with the events that may change its mind."""
        plugins = {queued.gating_plugin} if queued.gated else queued.unschedulable_plugins | queued.pending_plugins
        registered = self._hints.registered(queued.pod.spec.scheduler_name)
        return {plugin: registered.get(plugin, ()) for plugin in sorted(plugins)}

    def __len__(self) -> int:
        """All pods but those in flight."""
        return len(self._queues) if self._groups is None else sum(1 for _ in self)

    def __iter__(self) -> Iterator[QueuedPod]:
        """All pods but those in flight: active and backing off in the order they would be tried, then the others."""
        if self._groups is None:
            return iter(self._queues)
        queued = (member for entity in self._queues for member in entity.members)
        return chain(queued, self._groups.outside())

    # How it is decided

    def _wake(self, waiting: Iterable[Collection[QueuedPod]], listeners: Listeners, before: Any, after: Any) -> bool:
        """Bring back the pods that an event helps; of pods with one signature the hints are asked about the first."""
        called: list[tuple[list[QueuedPod], Strategy]] = []
        for equal in waiting:
            for first in equal:
                strategy = self._hints.strategy(first, listeners, before, after)
                if strategy is not Strategy.SKIP:
                    called.append((list(equal), strategy))
                break
        woken = False
        self._queues.cause = before if after is None else after
        for pods, strategy in called:
            for queued in pods:
                if not listeners.wildcard and self._queues.stays_gated(queued, listeners.label):
                    continue
                self._queues.take_out(queued)
                self._queues.requeue(queued, strategy, listeners.label)
                woken = woken or queued.queue != UNSCHEDULABLE
        self._queues.cause = None
        self.in_flight.record(listeners, before, after)
        return woken

    def _strategy_after_flight(self, queued: QueuedPod) -> Strategy:
        events = self.in_flight.since(queued.pod.uid)
        if events is None or not (queued.unschedulable_plugins or queued.pending_plugins):
            return Strategy.AFTER_BACKOFF
        if self._pod_groups and queued.pod.spec.scheduling_group is not None:
            return Strategy.AFTER_BACKOFF
        best = Strategy.SKIP
        for listeners, before, after in events:
            strategy = self._hints.strategy(queued, listeners, before, after)
            if strategy is Strategy.IMMEDIATELY:
                return strategy
            if strategy is Strategy.AFTER_BACKOFF:
                best = strategy
                if not queued.pending_plugins:
                    break
        return best

    def _renominate(self, before: Pod, after: Pod) -> None:
        """A nomination made in memory outlives an update only where neither object carries one."""
        known = self._nominator.node_of(before.uid)
        if before.uid != after.uid:
            self._nominator.remove(before.uid)
        in_memory = known if not before.status.nominated_node_name else None
        node = after.status.nominated_node_name or in_memory or ""
        if node or known:
            self._nominator.nominate(after, node)

    def _new(self, pod: Pod) -> QueuedPod:
        return QueuedPod(pod, self._clock.now(), self._next_sequence())

    def _next_sequence(self) -> int:
        self._sequence += 1
        return self._sequence
