"""Stands in for the API server: takes the scheduler's writes and sends back what a watch would.

A bound pod comes back with its node, a failed one with its condition and its nominated node, a victim's deletion comes
before its preemptor is let go. Writes are only queued while the scheduler decides, and delivered by `deliver`
afterwards, because events arrive between decisions in a real scheduler, too. That is work a scheduler does for each
pod, so it is part of what is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from msgspec.structs import replace

from podium.engine.intake import Intake
from podium.framework.clock import Clock
from podium.framework.diagnosis import Nomination
from podium.framework.handle import Preemptor
from podium.kube import Condition, Pod, PodStatus
from podium.kube.meta import format_time
from podium.testing.memory_writer import MemoryWriter

DELETED = "2026-01-01T00:01:00Z"


class ApiStandIn(MemoryWriter):
    """Every pod's latest version by uid, and the events still to be delivered."""

    intake: Intake

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self.pods: dict[str, Pod] = {}
        self.awaited: set[str] = set()
        """The pods that the workload waits to see bound."""
        self.bindings = 0
        self._annotations: dict[str, Mapping[str, str]] = {}
        """Annotations to be seen when the pod comes back bound."""
        self._evictions: list[tuple[Sequence[Pod], Callable[[str | None], None]]] = []

    # Writes of the scheduler

    def evict(
        self, victims: Sequence[Pod], preemptor: Preemptor, node_name: str, done: Callable[[str | None], None]
    ) -> None:
        self._evictions.append((victims, done))

    def nominate(self, pod: Pod, node_name: str) -> None:
        if pod.uid in self.pods:
            self.change(lambda: self._set_status(pod, self.pods[pod.uid].status.conditions, node_name))

    def clear_nomination(self, pod: Pod) -> None:
        self.change(lambda: self._set_status(pod, self.pods[pod.uid].status.conditions, ""))

    def annotate(self, pod: Pod, annotations: Mapping[str, str]) -> None:
        self._annotations[pod.metadata.uid] = annotations

    def failed(self, pod: Pod, reason: str, message: str, nomination: Nomination | None) -> None:
        if reason and pod.uid in self.pods:
            condition = Condition(type="PodScheduled", status="False", reason=reason, message=message)
            nominated = pod.status.nominated_node_name if nomination is None else nomination.node_name
            self.change(lambda: self._set_status(pod, (condition,), nominated))

    # Events that come back

    def deliver(self) -> bool:
        """Deliver the events of the scheduler's writes; whether there were any."""
        wrote = bool(self.placements or self._evictions)
        if self.placements:
            scheduled = _scheduled(int(self.clock.now()))
            for pod, node_name in self.placements:
                bound = replace(pod, spec=replace(pod.spec, node_name=node_name), status=scheduled)
                uid = pod.metadata.uid
                if self._annotations:
                    bound = _annotated(bound, self._annotations.pop(uid, {}))
                self.pods[uid] = bound
                self.awaited.discard(uid)
                self.intake.set(bound)
            self.bindings += len(self.placements)
            self.placements.clear()
        changed = super().deliver()
        evictions, self._evictions = self._evictions, []
        for victims, done in evictions:
            self._evict(victims, done)
        return wrote or changed

    def remove(self, pod: Pod) -> None:
        self.delete_pod(pod.uid)

    def _set_status(self, pod: Pod, conditions: tuple[Condition, ...], nominated: str) -> None:
        latest = self.pods.get(pod.uid)
        if latest is None or latest.node_name:
            return
        status = replace(latest.status, conditions=conditions, nominated_node_name=nominated)
        if status != latest.status:
            self.submit(replace(latest, status=status))

    # Writes of others

    def submit(self, pod: Pod) -> None:
        """A new pod, or a new version of one."""
        self.pods[pod.metadata.uid] = pod
        self.intake.set(pod)

    def delete_pod(self, uid: str) -> None:
        """A pod is deleted; one with finalizers stays, marked. One that is gone already is left out."""
        pod = self.pods.get(uid)
        if pod is None:
            return
        if pod.metadata.finalizers:
            self.submit(replace(pod, metadata=replace(pod.metadata, deletion_timestamp=DELETED)))
        else:
            del self.pods[uid]
            self.awaited.discard(uid)
            self.intake.delete(pod)


def _annotated(pod: Pod, annotations: Mapping[str, str]) -> Pod:
    meta = pod.metadata
    return replace(pod, metadata=replace(meta, annotations={**meta.annotations, **annotations}))


@lru_cache(maxsize=1)
def _scheduled(second: int) -> PodStatus:
    """The status of a pod that was bound a moment ago."""
    condition = Condition(type="PodScheduled", status="True", last_transition_time=format_time(second))
    return PodStatus(phase="Pending", conditions=(condition,))
