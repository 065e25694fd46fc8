"""Takes the scheduler's writes in a simulation, and brings back what became of them.

Writes are noted while the scheduler decides, and come back to it between decisions (`deliver`), as a watch would bring
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from podium.framework.diagnosis import Nomination
from podium.framework.handle import Preemptor
from podium.kube import PersistentVolume, PersistentVolumeClaim, Pod, ResourceClaim
from podium.kube.claim_status import deallocated, released, reserved
from podium.kube.devices import Allocation
from podium.kube.extended_resources import created
from podium.kube.pod import ExtendedResourceRequestMapping
from podium_lab.simulator.live_pods import LivePods
from podium_lab.simulator.pod_lives import SimulatedPodLives
from podium_lab.simulator.timeline import SimulatedClock


class VirtualWriter:
    """The engine's writer and listener."""

    def __init__(self, pods: LivePods, lives: SimulatedPodLives, clock: SimulatedClock, *, drop: bool) -> None:
        """With `drop`, pods that are not placed at once are given up."""
        self._pods = pods
        self._lives = lives
        self._clock = clock
        self._drop = drop
        self._bound: list[tuple[Pod, str]] = []
        self._writes: list[Callable[[], None]] = []

    def bind(self, pod: Pod, node_name: str) -> None:
        self._bound.append((pod, node_name))

    def annotate(self, pod: Pod, annotations: Mapping[str, str]) -> None:
        """Annotations are written before the pod is bound, so the bound pod carries them."""
        self._pods.annotate(pod, annotations)

    def evict(
        self, victims: Sequence[Pod], preemptor: Preemptor, node_name: str, done: Callable[[str | None], None]
    ) -> None:
        self._writes.append(lambda: self._preempt(victims, done))

    def taken_back(self, victim: Pod, preemptor: Preemptor, node_name: str) -> None:
        pass

    def nominate(self, pod: Pod, node_name: str) -> None:
        self._writes.append(lambda: self._pods.set_nomination(pod.metadata.uid, node_name))

    def clear_nomination(self, pod: Pod) -> None:
        self._writes.append(lambda: self._pods.set_nomination(pod.metadata.uid, ""))

    def write_volumes(self, volumes: Iterable[PersistentVolume], claims: Iterable[PersistentVolumeClaim]) -> None:
        for each in (*volumes, *claims):
            self._writes.append(lambda each=each: self._pods.intake.set(each))  # type: ignore[misc]

    def reserve_claim(self, claim: ResourceClaim, allocation: Allocation | None, pod: Pod) -> None:
        latest = reserved(claim, allocation, pod, self._clock.now())
        self._writes.append(lambda: self._pods.intake.set(latest))

    def create_claim(
        self,
        claim: ResourceClaim,
        allocation: Allocation,
        pod: Pod,
        mappings: Sequence[ExtendedResourceRequestMapping],
    ) -> None:
        self.reserve_claim(created(claim), allocation, pod)

    def delete_claim(self, claim: ResourceClaim) -> None:
        self._writes.append(lambda: self._pods.intake.delete(claim))

    def release_claim(self, claim: ResourceClaim, pod: Pod) -> None:
        self._writes.append(lambda: self._pods.intake.set(released(claim, pod)))

    def deallocate_claim(self, claim: ResourceClaim) -> None:
        self._writes.append(lambda: self._pods.intake.set(deallocated(claim)))

    def scheduled(self, pod: Pod, node_name: str) -> None:
        pass

    def failed(self, pod: Pod, reason: str, message: str, nomination: Nomination | None) -> None:
        live = self._pods.by_uid.get(pod.metadata.uid)
        if live is None:
            return
        live.message = message
        if self._drop:
            self._writes.append(lambda: self._pods.give_up(live))
        elif nomination is not None and nomination.node_name != live.pod.status.nominated_node_name:
            self._writes.append(lambda: self._pods.set_nomination(pod.metadata.uid, nomination.node_name))

    def deliver(self) -> None:
        """Tell the scheduler what became of its writes."""
        if self._bound:
            pods = self._pods
            for pod, node_name in self._bound:
                live = pods.by_uid.get(pod.metadata.uid)
                if live is not None:
                    waited = self._clock.time - live.since
                    for counts in (pods.counts, live.cell):
                        counts.placed += 1
                        counts.waits.add(waited)
                    self._lives.bound(live, node_name)
            self._bound.clear()
        while self._writes:
            writes, self._writes = self._writes, []
            for write in writes:
                write()

    def _preempt(self, victims: Sequence[Pod], done: Callable[[str | None], None]) -> None:
        """The preemptor is let go before the last deletion, whose event then brings it back."""
        pods = self._pods
        pods.counts.preempted += len(victims)
        for victim in victims:
            if victim.metadata.uid in pods.by_uid:
                pods.by_uid[victim.metadata.uid].cell.preempted += 1
        for victim in victims[:-1]:
            self._lives.evict(victim.metadata.uid)
        done(None)
        self._lives.evict(victims[-1].metadata.uid)
