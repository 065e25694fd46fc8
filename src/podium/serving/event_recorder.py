"""Records the events that `kubectl describe pod` shows, through events.k8s.io/v1 by client-go's rules.

Events that say the same of the same object (its resource version included, the note not) within six minutes become a
series: the first repetition writes `series.count`, later ones only count, and the count is written again every half
hour and when the series has ended. `Scheduled` and `LeaderElection` are not counted so: they never repeat.

Recording never waits; `sender` does the sending.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Final, NamedTuple

from podium.client import Client
from podium.config.durations import SECOND, Duration
from podium.framework.clock import Clock
from podium.framework.handle import Preemptor
from podium.framework.waiting import WaitingPod
from podium.kube import Pod
from podium.kube.meta import DEFAULT_NAMESPACE, ObjectReference
from podium.serving.event_sender import (
    INSTANCE_LIMIT,
    QUEUE_LIMIT,
    EventEntry,
    EventMeta,
    EventObject,
    EventSender,
    cut_note,
    event_name,
    micro_time,
    reference,
)

NORMAL: Final = "Normal"
WARNING: Final = "Warning"

FINISH_AFTER: Final = 360.0
REFRESH_EVERY: Final = 1800.0
SWEEP_EVERY: Final = 60.0
MOST_OPEN: Final = 50_000
"""Events that may yet be repeated; beyond it the one not seen for longest is forgotten."""

FAILED_SCHEDULING: Final = "FailedScheduling"
WAITING_ON_PERMIT: Final = "WaitingOnPermit"
"""The reason of the event of a pod that a plugin holds at Permit."""
ONCE: Final = frozenset({"Scheduled", "LeaderElection"})
"""Reasons that are never the same thing again, so that nothing need be remembered of them."""


class EventContent(NamedTuple):
    """What one event says, in the order of `EventRecorder.record`."""

    regarding: Pod
    related: Pod | None
    type: str
    reason: str
    action: str
    note: str
    controller: str


def scheduled(pod: Pod, node_name: str) -> EventContent:
    note = f"Successfully assigned {pod.namespace}/{pod.name} to {node_name}"
    return EventContent(pod, None, NORMAL, "Scheduled", "Binding", note, pod.spec.scheduler_name)


def failed_scheduling(pod: Pod, message: str) -> EventContent:
    return EventContent(pod, None, WARNING, FAILED_SCHEDULING, "Scheduling", message, pod.spec.scheduler_name)


def waiting_on_permit(waiting: WaitingPod) -> EventContent:
    """kube-scheduler only logs this; as an event it is there for `kubectl describe` and `podium explain`."""
    pod, limit = waiting.pod, Duration(round((waiting.deadline - waiting.since) * SECOND))
    names = ", ".join(f'"{name}"' for name in waiting.pending)
    holders = f"plugin {names} holds" if len(waiting.pending) == 1 else f"plugins {names} hold"
    note = f"{holders} the pod for up to {limit} before it goes to {waiting.node_name}"
    return EventContent(pod, None, NORMAL, WAITING_ON_PERMIT, "Scheduling", note, pod.spec.scheduler_name)


def binding_conditions_pending(pod: Pod, node_name: str) -> EventContent:
    note = f"waiting for binding conditions for device on node {node_name}"
    return EventContent(pod, None, NORMAL, "BindingConditionsPending", "Scheduling", note, pod.spec.scheduler_name)


def kind_of(preemptor: Preemptor) -> str:
    """What messages call it."""
    return "pod" if isinstance(preemptor, Pod) else "podgroup"


def scheduler_of(preemptor: Preemptor) -> str:
    return preemptor.spec.scheduler_name if isinstance(preemptor, Pod) else preemptor.scheduler_name


def preempted(victim: Pod, preemptor: Preemptor, node_name: str, *, in_memory: bool = False) -> EventContent:
    """Reported by the preemptor's scheduler, whichever had placed the victim; `in_memory` if it was not bound yet.

    kube-scheduler v1.36 means to name the preemptor as related too, but loses it on the way.
    """
    by, where = f"{kind_of(preemptor)} {preemptor.uid}", " (in kube-scheduler memory)." if in_memory else ""
    note = f"Preempted by {by} on node {node_name}{where}"
    related = preemptor if isinstance(preemptor, Pod) else None
    return EventContent(victim, related, NORMAL, "Preempted", "Preempting", note, scheduler_of(preemptor))


class EventRecorder:
    """Records and sends the events of one process. `run` sends until cancelled; `drain` empties the queue at the end.

    host: the reporting instance is `<controller>-<host>`.
    busy: whether something more important is waiting to be sent.
    limit: how many events may wait.
    """

    def __init__(
        self,
        client: Client,
        *,
        host: str,
        clock: Clock,
        rng: random.Random,
        report: Callable[[str], None],
        busy: Callable[[], bool] = lambda: False,
        limit: int = QUEUE_LIMIT,
    ) -> None:
        self._host = host
        self._clock = clock
        self._rng = rng
        self._sender = EventSender(
            client, clock=clock, rng=rng, report=report, busy=busy, limit=limit, on_lost=self._forget
        )
        self._open: dict[tuple[str, ...], EventEntry] = {}  # by time last seen: a repetition moves to the end
        self._last_name = 0

    @property
    def waiting(self) -> int:
        """Events not sent yet, those being sent included."""
        return self._sender.waiting

    @property
    def sent(self) -> int:
        return self._sender.sent

    @property
    def dropped(self) -> int:
        """Events given up: no room in the queue, refused, or tried too often."""
        return self._sender.dropped

    def record(
        self, regarding: Pod, related: Pod | None, type: str, reason: str, action: str, note: str, controller: str
    ) -> None:
        """Has an event on a pod sent, soon: `recorder.record(*scheduled(pod, "n1"))`."""
        other = None if related is None else reference(related)
        self.record_on(reference(regarding), other, type, reason, action, note, controller)

    def record_on(
        self,
        regarding: ObjectReference,
        related: ObjectReference | None,
        type: str,
        reason: str,
        action: str,
        note: str,
        controller: str,
    ) -> None:
        """The same on any object."""
        now = self._clock.now()
        if reason in ONCE:
            self._sender.enqueue(
                EventEntry(self._event(regarding, related, type, reason, action, note, controller), None, now)
            )
            return
        key = _key(regarding, related, type, reason, action, controller)
        known = self._open.pop(key, None)
        if known is not None and now - known.last_seen < FINISH_AFTER:
            self._open[key] = known
            self._repeat(known, now)
            return
        if known is not None:
            self._finish(known)
        entry = EventEntry(self._event(regarding, related, type, reason, action, note, controller), key, now)
        if self._sender.enqueue(entry):
            self._open[key] = entry
            if len(self._open) > MOST_OPEN:
                self._finish(self._open.pop(next(iter(self._open))))

    def record_election(self, lease: ObjectReference, note: str, controller: str) -> None:
        """For `Election.on_event`."""
        self.record_on(lease, None, NORMAL, "LeaderElection", "Electing", note, controller)

    async def run(self) -> None:
        """Sends until cancelled; never raises for faults of the server."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._sender.run())
            tasks.create_task(self._finish_old())

    async def drain(self, timeout: float) -> int:
        """Waits until everything recorded was sent, while `run` runs, but `timeout` seconds at most; what is left."""
        return await self._sender.drain(timeout)

    def _event(
        self,
        regarding: ObjectReference,
        related: ObjectReference | None,
        type: str,
        reason: str,
        action: str,
        note: str,
        controller: str,
    ) -> EventObject:
        now = self._clock.now()
        self._last_name = max(int(now * 1e9), self._last_name + 1)
        name = event_name(regarding.name, self._last_name, self._rng)
        return EventObject(
            api_version="events.k8s.io/v1",
            kind="Event",
            metadata=EventMeta(name=name, namespace=regarding.namespace or DEFAULT_NAMESPACE),
            event_time=micro_time(now),
            reporting_controller=controller,
            reporting_instance=f"{controller}-{self._host}"[:INSTANCE_LIMIT],
            action=action,
            reason=reason,
            regarding=regarding,
            related=related,
            note=cut_note(note),
            type=type,
        )

    def _repeat(self, entry: EventEntry, now: float) -> None:
        entry.count += 1
        entry.last_seen = now
        if not entry.pending and (entry.sent == 1 or now - entry.sent_at >= REFRESH_EVERY):
            self._sender.enqueue(entry)

    def _finish(self, entry: EventEntry) -> None:
        entry.finished = True
        if not entry.pending and entry.count > entry.sent:
            self._sender.enqueue(entry)

    async def _finish_old(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_EVERY)
            ended = self._clock.now() - FINISH_AFTER
            while self._open:
                oldest = next(iter(self._open.values()))
                if oldest.last_seen > ended:
                    break
                self._forget(oldest)
                self._finish(oldest)

    def _forget(self, entry: EventEntry) -> None:
        """If it happens again, that is a new event."""
        if entry.key is not None and self._open.get(entry.key) is entry:
            del self._open[entry.key]


def _key(
    regarding: ObjectReference, related: ObjectReference | None, type: str, reason: str, action: str, controller: str
) -> tuple[str, ...]:
    of = (
        type,
        reason,
        action,
        controller,
        regarding.kind,
        regarding.namespace,
        regarding.name,
        regarding.uid,
        regarding.resource_version,
    )
    return of if related is None else (*of, related.namespace, related.name, related.uid, related.resource_version)
