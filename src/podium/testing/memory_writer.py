"""Carries out in memory what the scheduler writes, as an API server would.

Every write succeeds. What it changes is noted, and the scheduler sees it at `deliver`: between decisions, as a watch
would bring it. Writers that are to differ derive from this one, and override what differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from podium.engine.intake import Intake
from podium.framework.clock import Clock, SystemClock
from podium.framework.diagnosis import Nomination
from podium.framework.handle import Effect, Preemptor
from podium.kube import PersistentVolume, PersistentVolumeClaim, Pod, ResourceClaim
from podium.kube.claim_status import deallocated, released, reserved
from podium.kube.devices import Allocation
from podium.kube.extended_resources import created
from podium.kube.meta import ClusterObject
from podium.kube.pod import ExtendedResourceRequestMapping


class MemoryWriter:
    """The writer and listener of an engine, whose `intake` is set once there is one; without, nothing comes back.

    With `at_once`, changes are seen when they are written, and nothing is left to deliver.
    """

    def __init__(self, clock: Clock | None = None, *, at_once: bool = False) -> None:
        self.clock: Clock = clock or SystemClock()
        self.intake: Intake | None = None
        self.placements: list[tuple[Pod, str]] = []
        """Which pods were bound to which nodes. It is for others to let them come back with their nodes."""
        self.victims: list[Pod] = []
        self.annotated: dict[str, dict[str, str]] = {}
        """By the pods' keys."""
        self._at_once = at_once
        self._changes: list[Callable[[], None]] = []

    def deliver(self) -> bool:
        """Let the scheduler see what was written so far; whether there was anything."""
        changes, self._changes = self._changes, []
        for change in changes:
            change()
        return bool(changes)

    def change(self, change: Callable[[], None]) -> None:
        """Something that the scheduler is to see."""
        if self._at_once:
            change()
        else:
            self._changes.append(change)

    def object_changes(self, change: Callable[[], None]) -> None:
        """The same for claims and volumes."""
        self.change(change)

    def remove(self, pod: Pod) -> None:
        """Delete a pod that was evicted."""
        if self.intake is not None:
            self.intake.delete(pod)

    def bind(self, pod: Pod, node_name: str) -> Effect:
        self.placements.append((pod, node_name))
        return None

    def evict(
        self, victims: Sequence[Pod], preemptor: Preemptor, node_name: str, done: Callable[[str | None], None]
    ) -> None:
        self.victims += victims
        self.change(lambda: self._evict(victims, done))

    def _evict(self, victims: Sequence[Pod], done: Callable[[str | None], None]) -> None:
        """The preemptor is let go before the last deletion, whose event then brings it back."""
        for victim in victims[:-1]:
            self.remove(victim)
        done(None)
        self.remove(victims[-1])

    def taken_back(self, victim: Pod, preemptor: Preemptor, node_name: str) -> None:
        return None

    def nominate(self, pod: Pod, node_name: str) -> Effect:
        return None

    def clear_nomination(self, pod: Pod) -> None:
        return None

    def annotate(self, pod: Pod, annotations: Mapping[str, str]) -> Effect:
        self.annotated.setdefault(pod.key, {}).update(annotations)
        return None

    def write_volumes(self, volumes: Iterable[PersistentVolume], claims: Iterable[PersistentVolumeClaim]) -> Effect:
        for each in (*volumes, *claims):
            self._set(each)
        return None

    def reserve_claim(self, claim: ResourceClaim, allocation: Allocation | None, pod: Pod) -> Effect:
        self._set(reserved(claim, allocation, pod, self.clock.now()))
        return None

    def create_claim(
        self,
        claim: ResourceClaim,
        allocation: Allocation,
        pod: Pod,
        mappings: Sequence[ExtendedResourceRequestMapping],
    ) -> Effect:
        return self.reserve_claim(created(claim), allocation, pod)

    def delete_claim(self, claim: ResourceClaim) -> None:
        if (intake := self.intake) is not None:
            self.object_changes(lambda: intake.delete(claim))

    def release_claim(self, claim: ResourceClaim, pod: Pod) -> None:
        self._set(released(claim, pod))

    def deallocate_claim(self, claim: ResourceClaim) -> None:
        self._set(deallocated(claim))

    def _set(self, latest: ClusterObject) -> None:
        if (intake := self.intake) is not None:
            self.object_changes(lambda: intake.set(latest))

    def scheduled(self, pod: Pod, node_name: str) -> None:
        return None

    def failed(self, pod: Pod, reason: str, message: str, nomination: Nomination | None) -> None:
        return None
