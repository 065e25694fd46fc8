"""Stands in for the API server and the nodes in a simulation: takes the scheduler's writes, and runs bound pods.

Writes are noted while the scheduler decides, and come back to it between decisions, as a watch would bring them. A
bound pod starts after the start delay and ends when its lifetime is over. A victim stays for its grace period. A pod
that is evicted, or whose node is lost, is replaced by a new one, as a controller would.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Literal

from msgspec.structs import replace

from podium.engine.intake import Intake
from podium.framework.diagnosis import Nomination
from podium.framework.experience import REWARD
from podium.framework.handle import Preemptor
from podium.kube import Condition, PersistentVolume, PersistentVolumeClaim, Pod, PodStatus, ResourceClaim
from podium.kube.claim_status import deallocated, released, reserved
from podium.kube.devices import Allocation
from podium.kube.extended_resources import created
from podium.kube.meta import format_time
from podium.kube.pod import ExtendedResourceRequestMapping
from podium_lab.simulator.distributions import Draw
from podium_lab.simulator.pod_classes import ClassCell, PodClasses
from podium_lab.simulator.pods import FOREVER, PodArrival
from podium_lab.simulator.qos_figures import QosFigures
from podium_lab.simulator.reasons import main_reason
from podium_lab.simulator.rewards import RewardGiver
from podium_lab.simulator.timeline import EventTimeline, SimulatedClock
from podium_lab.simulator.usage import UsageMeter
from podium_lab.simulator.waits import WaitTimes

Evicted = Literal["restart", "resume", "lost"]


class LivePod:
    """A pod that waits or runs, of any incarnation."""

    __slots__ = (
        "arrival",
        "began",
        "cell",
        "ends",
        "incarnation",
        "message",
        "node_name",
        "pod",
        "remaining",
        "since",
        "suspended",
        "traits",
    )

    def __init__(
        self, arrival: PodArrival, cell: ClassCell, pod: Pod, since: float, remaining: float, incarnation: int
    ) -> None:
        self.arrival = arrival
        self.cell = cell
        """Where the pod is counted with those of the same classes."""
        self.pod = pod
        self.since = since
        """When it came to the queue."""
        self.remaining = remaining
        """Seconds it still has to run, from `began` on."""
        self.incarnation = incarnation
        self.node_name = ""
        self.began = 0.0
        self.ends = FOREVER
        self.suspended = False
        """Whether its node is out of reach, so that it does nothing."""
        self.message = ""
        """Why it was not placed when it was last tried."""
        self.traits: tuple[float, ...] = ()
        """What the usage model drew for it."""


class VirtualApi:
    """Every live pod by uid, and counts of what became of the others. The engine's writer and listener."""

    def __init__(
        self,
        clock: SimulatedClock,
        timeline: EventTimeline,
        *,
        start_delay: Draw,
        evicted: Evicted,
        drop: bool,
        start_times: bool,
        qos: QosFigures | None = None,
    ) -> None:
        """`start_times`: write into pods when they started, which preemption reads; that costs one more update each.
        With `qos`, it keeps account of all pods, and the scheduler is shown how they start and end."""
        self.intake: Intake
        self.live: dict[str, LivePod] = {}
        self.arrived = self.placed = self.running = self.ended = self.lost = 0
        self.restarts = self.preempted = self.evictions = 0
        self.dropped: Counter[str] = Counter()
        """Pods that were given up, by reason."""
        self.waits = WaitTimes()
        self.classes = PodClasses()
        self._clock = clock
        self._timeline = timeline
        self._start_delay = start_delay
        self._evicted = evicted
        self._drop = drop
        self._start_times = start_times
        self._qos = qos
        self._owners: set[str] = set()
        self._bounded: dict[str, LivePod] = {}
        """By name of the arrival: pods that go at a certain time."""
        self.usage: UsageMeter | None = None
        self.rewards: RewardGiver | None = None
        self._bound: list[tuple[Pod, str]] = []
        self._writes: list[Callable[[], None]] = []

    @property
    def pending(self) -> int:
        return len(self.live) - self.running

    # What happens to the workload

    def arrive(self, arrival: PodArrival, traits: tuple[float, ...] = ()) -> None:
        """A pod of the workload comes."""
        self.arrived += 1
        owner = arrival.template.owner
        if owner is not None and owner.reference.uid not in self._owners:
            self._owners.add(owner.reference.uid)
            self.intake.set_custom(owner.resource, f"default/{owner.reference.name}", owner.value)
            if self._qos is not None:
                self._qos.set_owner(owner)
        if arrival.until < FOREVER:
            self._timeline.plan(arrival.until, self._expire, arrival.name)
        cell = self.classes.of(arrival.template)
        cell.arrived += 1
        self._submit(arrival, cell, arrival.lifetime, 0, traits)

    def _submit(
        self, arrival: PodArrival, cell: ClassCell, remaining: float, incarnation: int, traits: tuple[float, ...]
    ) -> None:
        now = self._clock.time
        name = arrival.name if not incarnation else f"{arrival.name}-r{incarnation}"
        pod = arrival.template.pod(name, self._clock.now())
        live = self.live[pod.metadata.uid] = LivePod(arrival, cell, pod, now, remaining, incarnation)
        live.traits = traits
        if arrival.until < FOREVER:
            self._bounded[arrival.name] = live
        if arrival.node_name and not incarnation:
            self._confirm(live, arrival.node_name)
        else:
            self._set(pod)

    def _set(self, pod: Pod) -> None:
        if self._qos is not None:
            self._qos.observe(pod, self._clock.now())
        self.intake.set(pod)

    def _expire(self, name: str) -> None:
        """The workload that the pod belongs to is deleted."""
        live = self._bounded.pop(name, None)
        if live is not None and self.live.get(live.pod.metadata.uid) is live:
            self.ended += 1
            live.cell.ended += 1
            self._remove(live)

    def _end(self, live: LivePod) -> None:
        """The pod has run for its time; the end of one that was stopped in between comes later than planned."""
        if not live.suspended and self._clock.time >= live.ends and self.live.get(live.pod.metadata.uid) is live:
            self.ended += 1
            live.cell.ended += 1
            tasks = live.arrival.tasks
            if tasks is None:
                self._remove(live)
                return
            self._remove(live, succeeded=True)
            following = tasks.next(live.arrival, self._clock.time)
            if following is not None:
                self.arrive(following, live.traits)

    def _remove(self, live: LivePod, *, succeeded: bool = False) -> None:
        """The pod is gone, and its node has the room again."""
        del self.live[live.pod.metadata.uid]
        if live.node_name:
            self.running -= 1
            if self.usage is not None:
                self.usage.went(live.pod.metadata.uid)
        if succeeded:
            live.pod = replace(live.pod, status=replace(live.pod.status, phase="Succeeded"))
        if self._qos is not None:
            self._qos.ended(live.pod, self._clock.now())
        if succeeded:
            self.intake.set(live.pod)
        else:
            self.intake.delete(live.pod)

    # What the scheduler writes

    def bind(self, pod: Pod, node_name: str) -> None:
        self._bound.append((pod, node_name))

    def annotate(self, pod: Pod, annotations: Mapping[str, str]) -> None:
        """Annotations are written before the pod is bound, so the bound pod carries them."""
        live = self.live.get(pod.metadata.uid)
        if live is not None:
            metadata = live.pod.metadata
            live.pod = replace(
                live.pod, metadata=replace(metadata, annotations={**metadata.annotations, **annotations})
            )

    def evict(
        self, victims: Sequence[Pod], preemptor: Preemptor, node_name: str, done: Callable[[str | None], None]
    ) -> None:
        self._writes.append(lambda: self._preempt(victims, done))

    def taken_back(self, victim: Pod, preemptor: Preemptor, node_name: str) -> None:
        pass

    def nominate(self, pod: Pod, node_name: str) -> None:
        self._writes.append(lambda: self._set_nomination(pod.metadata.uid, node_name))

    def clear_nomination(self, pod: Pod) -> None:
        self._writes.append(lambda: self._set_nomination(pod.metadata.uid, ""))

    def write_volumes(self, volumes: Iterable[PersistentVolume], claims: Iterable[PersistentVolumeClaim]) -> None:
        for each in (*volumes, *claims):
            self._writes.append(lambda each=each: self.intake.set(each))  # type: ignore[misc]

    def reserve_claim(self, claim: ResourceClaim, allocation: Allocation | None, pod: Pod) -> None:
        latest = reserved(claim, allocation, pod, self._clock.now())
        self._writes.append(lambda: self.intake.set(latest))

    def create_claim(
        self,
        claim: ResourceClaim,
        allocation: Allocation,
        pod: Pod,
        mappings: Sequence[ExtendedResourceRequestMapping],
    ) -> None:
        self.reserve_claim(created(claim), allocation, pod)

    def delete_claim(self, claim: ResourceClaim) -> None:
        self._writes.append(lambda: self.intake.delete(claim))

    def release_claim(self, claim: ResourceClaim, pod: Pod) -> None:
        self._writes.append(lambda: self.intake.set(released(claim, pod)))

    def deallocate_claim(self, claim: ResourceClaim) -> None:
        self._writes.append(lambda: self.intake.set(deallocated(claim)))

    def scheduled(self, pod: Pod, node_name: str) -> None:
        pass

    def failed(self, pod: Pod, reason: str, message: str, nomination: Nomination | None) -> None:
        live = self.live.get(pod.metadata.uid)
        if live is None:
            return
        live.message = message
        if self._drop:
            self._writes.append(lambda: self._give_up(live))
        elif nomination is not None and nomination.node_name != live.pod.status.nominated_node_name:
            self._writes.append(lambda: self._set_nomination(pod.metadata.uid, nomination.node_name))

    # What comes back

    def deliver(self) -> None:
        """Tell the scheduler what became of its writes."""
        if self._bound:
            for pod, node_name in self._bound:
                live = self.live.get(pod.metadata.uid)
                if live is not None:
                    self.placed += 1
                    waited = self._clock.time - live.since
                    self.waits.add(waited)
                    live.cell.placed += 1
                    live.cell.waits.add(waited)
                    self._confirm(live, node_name)
            self._bound.clear()
        while self._writes:
            writes, self._writes = self._writes, []
            for write in writes:
                write()

    def _confirm(self, live: LivePod, node_name: str) -> None:
        """The pod has its node: it starts, and will end."""
        clock, pod = self._clock, live.pod
        live.began = clock.time + self._start_delay()
        later = self._qos is not None and live.began > clock.time
        status = _bound(int(clock.now())) if later else _scheduled(int(clock.now()), self._start_times)
        live.pod = pod = replace(pod, spec=replace(pod.spec, node_name=node_name), status=status)
        live.node_name = node_name
        live.message = ""
        self.running += 1
        if live.remaining < FOREVER:
            live.ends = live.began + live.remaining
            self._timeline.plan(live.ends, self._end, live)
        if later:
            self._timeline.plan(live.began, self._start, live)
        self._set(pod)
        if self.usage is not None:
            self.usage.came(pod.metadata.uid, node_name, live.arrival.template, live.traits)
        if self.rewards is not None:
            self._timeline.plan(live.began + self.rewards.delay(), self._reward, live)

    def _reward(self, live: LivePod) -> None:
        """It is known how the pod fares."""
        if self.rewards is not None and self.live.get(live.pod.metadata.uid) is live and not live.suspended:
            reward = self.rewards.reward(live.node_name, self._clock.time)
            self.annotate(live.pod, {REWARD: str(reward)})
            self._set(live.pod)

    def _start(self, live: LivePod) -> None:
        """The pod's node says that it runs."""
        if self.live.get(live.pod.metadata.uid) is live and not live.suspended:
            status = replace(live.pod.status, phase="Running", start_time=format_time(self._clock.now()))
            live.pod = replace(live.pod, status=status)
            self._set(live.pod)

    def _set_nomination(self, uid: str, node_name: str) -> None:
        live = self.live.get(uid)
        if live is None or live.node_name or live.pod.status.nominated_node_name == node_name:
            return
        live.pod = replace(live.pod, status=replace(live.pod.status, nominated_node_name=node_name))
        self._set(live.pod)

    def _give_up(self, live: LivePod) -> None:
        if self.live.get(live.pod.metadata.uid) is live and not live.node_name:
            self.dropped[main_reason(live.message)] += 1
            live.cell.dropped += 1
            self._remove(live)

    # Evictions

    def _preempt(self, victims: Sequence[Pod], done: Callable[[str | None], None]) -> None:
        """The preemptor is let go before the last deletion, whose event then brings it back."""
        self.preempted += len(victims)
        for victim in victims:
            if victim.metadata.uid in self.live:
                self.live[victim.metadata.uid].cell.preempted += 1
        for victim in victims[:-1]:
            self.evict_one(victim.metadata.uid)
        done(None)
        self.evict_one(victims[-1].metadata.uid)

    def evict_one(self, uid: str) -> None:
        """A pod has to go: it stays for its grace period, and its successor comes when it is gone."""
        live = self.live.get(uid)
        if live is None or live.pod.terminating:
            return
        grace = live.arrival.template.grace if live.node_name else 0.0
        if not grace:
            self.replace_one(uid)
            return
        deleted = format_time(self._clock.now() + grace)
        live.pod = replace(live.pod, metadata=replace(live.pod.metadata, deletion_timestamp=deleted))
        self._set(live.pod)
        self._timeline.plan(self._clock.time + grace, self._after_grace, live)

    def _after_grace(self, live: LivePod) -> None:
        if self.live.get(live.pod.metadata.uid) is live:
            self.replace_one(live.pod.metadata.uid)

    def replace_one(self, uid: str) -> None:
        """A pod is gone before its time; a new one comes for it, unless its work is lost."""
        live = self.live[uid]
        self.evictions += 1
        live.cell.evictions += 1
        self._remove(live)
        if self._evicted == "lost":
            self.lost += 1
            live.cell.lost += 1
            return
        remaining = live.arrival.lifetime
        if self._evicted == "resume" and live.node_name:
            ran = 0.0 if live.suspended else max(0.0, self._clock.time - live.began)
            remaining = max(0.0, live.remaining - ran)
        self.restarts += 1
        live.cell.restarts += 1
        self._submit(live.arrival, live.cell, remaining, live.incarnation + 1, live.traits)

    def suspend(self, node_name: str) -> list[LivePod]:
        """The pods of a node stop, because it is out of reach."""
        now = self._clock.time
        stopped = [live for live in self.live.values() if live.node_name == node_name and not live.suspended]
        for live in stopped:
            live.remaining = max(0.0, live.remaining - max(0.0, now - live.began))
            live.suspended = True
        return stopped

    def resume(self, stopped: Iterable[LivePod]) -> None:
        """They go on where they stopped."""
        for live in stopped:
            if live.suspended and self.live.get(live.pod.metadata.uid) is live:
                live.suspended = False
                live.began = self._clock.time
                if live.remaining < FOREVER:
                    live.ends = live.began + live.remaining
                    self._timeline.plan(live.ends, self._end, live)


@lru_cache(maxsize=1)
def _scheduled(second: int, started: bool) -> PodStatus:
    """The status of a pod that was bound a moment ago."""
    when = format_time(second)
    condition = Condition(type="PodScheduled", status="True", last_transition_time=when)
    return PodStatus(phase="Running", conditions=(condition,), start_time=when if started else None)


def _bound(second: int) -> PodStatus:
    """The status of a pod that was bound a moment ago and has not started."""
    condition = Condition(type="PodScheduled", status="True", last_transition_time=format_time(second))
    return PodStatus(phase="Pending", conditions=(condition,))
