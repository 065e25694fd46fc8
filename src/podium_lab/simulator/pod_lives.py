"""Leads pods through their lives in a simulation, as controllers and kubelets would on a cluster.

A pod that arrives waits for a node. Once bound it starts after the start delay and ends when its lifetime is over. A
victim stays for its grace period. A pod that is evicted, or whose node is lost, is replaced by a new one.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Literal

from msgspec.structs import replace

from podium.framework.pod_outcomes import REWARD
from podium.kube import Condition, PodStatus
from podium.kube.meta import format_time
from podium_lab.simulator.distributions import Draw
from podium_lab.simulator.live_pods import LivePod, LivePods
from podium_lab.simulator.pod_classes import PodTallies
from podium_lab.simulator.pods import FOREVER, PodArrival
from podium_lab.simulator.qos_figures import QosFigures
from podium_lab.simulator.rewards import RewardGiver
from podium_lab.simulator.timeline import EventTimeline, SimulatedClock

Evicted = Literal["restart", "resume", "lost"]


class SimulatedPodLives:
    """What happens to the pods of a run, whatever the scheduler does with them."""

    def __init__(
        self,
        pods: LivePods,
        clock: SimulatedClock,
        timeline: EventTimeline,
        *,
        start_delay: Draw,
        evicted: Evicted,
        start_times: bool,
        qos: QosFigures | None = None,
    ) -> None:
        """`start_times`: write into pods when they started, which preemption reads; that costs one more update each.
        With `qos`, the scheduler is shown how pods start and end."""
        self.rewards: RewardGiver | None = None
        self._pods = pods
        self._clock = clock
        self._timeline = timeline
        self._start_delay = start_delay
        self._evicted = evicted
        self._start_times = start_times
        self._qos = qos
        self._owners: set[str] = set()
        self._bounded: dict[str, LivePod] = {}
        """By name of the arrival: pods that go at a certain time."""

    # From arrival to end

    def arrive(self, arrival: PodArrival, traits: tuple[float, ...] = ()) -> None:
        """A pod of the workload comes."""
        pods = self._pods
        pods.counts.arrived += 1
        owner = arrival.template.owner
        if owner is not None and owner.reference.uid not in self._owners:
            self._owners.add(owner.reference.uid)
            pods.intake.set_custom(owner.resource, f"default/{owner.reference.name}", owner.value)
            if self._qos is not None:
                self._qos.set_owner(owner)
        if arrival.until < FOREVER:
            self._timeline.plan(arrival.until, self._expire, arrival.name)
        cell = pods.classes.of(arrival.template)
        cell.arrived += 1
        self._submit(arrival, cell, arrival.lifetime, 0, traits)

    def _submit(
        self, arrival: PodArrival, cell: PodTallies, remaining: float, incarnation: int, traits: tuple[float, ...]
    ) -> None:
        now = self._clock.time
        name = arrival.name if not incarnation else f"{arrival.name}-r{incarnation}"
        pod = arrival.template.pod(name, self._clock.now())
        live = self._pods.by_uid[pod.metadata.uid] = LivePod(arrival, cell, pod, now, remaining, incarnation)
        live.traits = traits
        if arrival.until < FOREVER:
            self._bounded[arrival.name] = live
        if arrival.node_name and not incarnation:
            self.bound(live, arrival.node_name)
        else:
            self._pods.show(pod)

    def bound(self, live: LivePod, node_name: str) -> None:
        """The pod has its node: it starts, and will end."""
        clock, pod, pods = self._clock, live.pod, self._pods
        live.began = clock.time + self._start_delay()
        later = self._qos is not None and live.began > clock.time
        status = _bound(int(clock.now())) if later else _scheduled(int(clock.now()), self._start_times)
        live.pod = pod = replace(pod, spec=replace(pod.spec, node_name=node_name), status=status)
        live.node_name = node_name
        live.message = ""
        pods.counts.running += 1
        if live.remaining < FOREVER:
            live.ends = live.began + live.remaining
            self._timeline.plan(live.ends, self._end, live)
        if later:
            self._timeline.plan(live.began, self._start, live)
        pods.show(pod)
        if pods.usage is not None:
            pods.usage.pod_added(pod.metadata.uid, node_name, live.arrival.template, live.traits)
        if self.rewards is not None:
            self._timeline.plan(live.began + self.rewards.delay(), self._reward, live)

    def _start(self, live: LivePod) -> None:
        """The pod's node says that it runs."""
        if self._pods.hold(live) and not live.suspended:
            status = replace(live.pod.status, phase="Running", start_time=format_time(self._clock.now()))
            live.pod = replace(live.pod, status=status)
            self._pods.show(live.pod)

    def _reward(self, live: LivePod) -> None:
        """It is known how the pod fares."""
        if self.rewards is not None and self._pods.hold(live) and not live.suspended:
            reward = self.rewards.reward(live.node_name, self._clock.time)
            self._pods.annotate(live.pod, {REWARD: str(reward)})
            self._pods.show(live.pod)

    def _end(self, live: LivePod) -> None:
        """The pod has run for its time; the end of one that was stopped in between comes later than planned."""
        if not live.suspended and self._clock.time >= live.ends and self._pods.hold(live):
            self._pods.counts.ended += 1
            live.cell.ended += 1
            tasks = live.arrival.tasks
            if tasks is None:
                self._pods.remove(live)
                return
            self._pods.remove(live, succeeded=True)
            following = tasks.next(live.arrival, self._clock.time)
            if following is not None:
                self.arrive(following, live.traits)

    def _expire(self, name: str) -> None:
        """The workload that the pod belongs to is deleted."""
        live = self._bounded.pop(name, None)
        if live is not None and self._pods.hold(live):
            self._pods.counts.ended += 1
            live.cell.ended += 1
            self._pods.remove(live)

    # Evictions

    def evict(self, uid: str) -> None:
        """A pod has to go: it stays for its grace period, and its successor comes when it is gone."""
        live = self._pods.by_uid.get(uid)
        if live is None or live.pod.terminating:
            return
        grace = live.arrival.template.grace if live.node_name else 0.0
        if not grace:
            self.replace(live)
            return
        deleted = format_time(self._clock.now() + grace)
        live.pod = replace(live.pod, metadata=replace(live.pod.metadata, deletion_timestamp=deleted))
        self._pods.show(live.pod)
        self._timeline.plan(self._clock.time + grace, self.replace, live)

    def replace(self, live: LivePod) -> None:
        """A pod goes before its time, if it is still there; a new one comes for it, unless its work is lost."""
        pods = self._pods
        if not pods.hold(live):
            return
        pods.counts.evictions += 1
        live.cell.evictions += 1
        pods.remove(live)
        if self._evicted == "lost":
            pods.counts.lost += 1
            live.cell.lost += 1
            return
        remaining = live.arrival.lifetime
        if self._evicted == "resume" and live.node_name:
            ran = 0.0 if live.suspended else max(0.0, self._clock.time - live.began)
            remaining = max(0.0, live.remaining - ran)
        pods.counts.restarts += 1
        live.cell.restarts += 1
        self._submit(live.arrival, live.cell, remaining, live.incarnation + 1, live.traits)

    # Nodes out of reach

    def suspend(self, node_name: str) -> list[LivePod]:
        """The pods of a node stop, because it is out of reach."""
        now = self._clock.time
        stopped = [live for live in self._pods.by_uid.values() if live.node_name == node_name and not live.suspended]
        for live in stopped:
            live.remaining = max(0.0, live.remaining - max(0.0, now - live.began))
            live.suspended = True
        return stopped

    def resume(self, stopped: Iterable[LivePod]) -> None:
        """They go on where they stopped."""
        for live in stopped:
            if live.suspended and self._pods.hold(live):
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
