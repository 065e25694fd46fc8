"""Carries out what the scheduler of a trial writes, as an API server would, and remembers it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec.structs import replace

from podium.engine.intake import Intake, on_node
from podium.framework.clock import Clock
from podium.framework.diagnosis import Nomination
from podium.framework.handle import Preemptor
from podium.kube import PersistentVolume, PersistentVolumeClaim, Pod, ResourceClaim
from podium.kube.claim_status import deallocated, released, reserved
from podium.kube.devices import Allocation
from podium.kube.extended_resources import created
from podium.kube.pod import ExtendedResourceRequestMapping


class TrialApi:
    """The writer and listener of the engine. What it writes comes back as a change, after the cycle."""

    def __init__(self, clock: Clock) -> None:
        self.intake: Intake
        self.bound: dict[str, str] = {}
        self.annotated: dict[str, dict[str, str]] = {}
        self.evicted: dict[str, list[str]] = {}
        self.failures: dict[str, tuple[str, str, str | None]] = {}
        """By pod: the reason, the message, and the node that it is nominated to."""
        self._clock = clock
        self._changes: list[Callable[[], None]] = []

    def settle(self) -> bool:
        """Let the scheduler see what was written; whether there was anything."""
        changes, self._changes = self._changes, []
        for change in changes:
            change()
        return bool(changes)

    # Writes

    def bind(self, pod: Pod, node_name: str) -> None:
        return None  # a plugin's own Bind may not come here; `scheduled` hears of both

    def evict(
        self, victims: Sequence[Pod], preemptor: Preemptor, node_name: str, done: Callable[[str | None], None]
    ) -> None:
        self.evicted.setdefault(preemptor.key, []).extend(victim.key for victim in victims)
        done(None)
        for victim in victims:
            self.bound.pop(victim.key, None)
            self._changes.append(lambda gone=victim: self.intake.delete(gone))  # type: ignore[misc]

    def taken_back(self, victim: Pod, preemptor: Preemptor, node_name: str) -> None:
        self.evicted.setdefault(preemptor.key, []).append(victim.key)

    def nominate(self, pod: Pod, node_name: str) -> None:
        return None

    def clear_nomination(self, pod: Pod) -> None:
        return None

    def annotate(self, pod: Pod, annotations: Mapping[str, str]) -> None:
        self.annotated.setdefault(pod.key, {}).update(annotations)

    def write_volumes(self, volumes: Iterable[PersistentVolume], claims: Iterable[PersistentVolumeClaim]) -> None:
        return None

    def reserve_claim(self, claim: ResourceClaim, allocation: Allocation | None, pod: Pod) -> None:
        self.intake.set(reserved(claim, allocation, pod, self._clock.now()))

    def create_claim(
        self,
        claim: ResourceClaim,
        allocation: Allocation,
        pod: Pod,
        mappings: Sequence[ExtendedResourceRequestMapping],
    ) -> None:
        self.reserve_claim(created(claim), allocation, pod)

    def delete_claim(self, claim: ResourceClaim) -> None:
        self.intake.delete(claim)

    def release_claim(self, claim: ResourceClaim, pod: Pod) -> None:
        self.intake.set(released(claim, pod))

    def deallocate_claim(self, claim: ResourceClaim) -> None:
        self.intake.set(deallocated(claim))

    # Outcomes

    def scheduled(self, pod: Pod, node_name: str) -> None:
        self.failures.pop(pod.key, None)
        self.bound[pod.key] = node_name
        annotations = {**pod.metadata.annotations, **self.annotated.get(pod.key, {})}
        shown = replace(pod, metadata=replace(pod.metadata, annotations=annotations))
        self._changes.append(lambda: self.intake.set(on_node(shown, node_name)))

    def failed(self, pod: Pod, reason: str, message: str, nomination: Nomination | None) -> None:
        self.failures[pod.key] = (reason, message, nomination.node_name or None if nomination else None)
