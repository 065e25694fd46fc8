"""Keeps the status of PodGroups (scheduling.x-k8s.io): the phase, and how many pods run, have succeeded or failed.

    (new) → Pending → Scheduling → Running → Finished
                ↑___________|_________|  ↘ Failed

A group is Pending until it has `minMember` pods, Scheduling until so many run or have succeeded, then Running. It ends
as Finished when `minMember` pods have succeeded, else as Failed when a pod has failed and as many have run at all.

Differs from scheduler-plugins: pods are counted in the group's own namespace only, so that groups of one name in two
namespaces do not share pods; `scheduleStartTime` is written when a group first has its pods.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import msgspec

from podium.client import ApiResource
from podium.controllers.reconcile import Key
from podium.framework.clock import Clock
from podium.kube import Pod
from podium.kube.custom_object import POD_GROUP_LABEL
from podium.kube.json_object import JsonObject
from podium.kube.meta import format_time

PENDING: Final = "Pending"
SCHEDULING: Final = "Scheduling"
RUNNING: Final = "Running"
FINISHED: Final = "Finished"
FAILED: Final = "Failed"
ENDED: Final = frozenset({FINISHED, FAILED})


class PodGroupStatus(msgspec.Struct, frozen=True, rename="camel"):
    """What the controller writes into a PodGroup."""

    phase: str = ""
    occupied_by: str = ""
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    schedule_start_time: str | None = None


def next_status(status: PodGroupStatus, min_member: int, pods: Sequence[Pod], now: float) -> PodGroupStatus:
    """The status that follows from the group's pods; the same where nothing has changed or the group has ended."""
    if status.phase in ENDED:
        return status
    if not status.phase:
        return msgspec.structs.replace(status, phase=PENDING)
    if status.phase == PENDING:
        if len(pods) < min_member:
            return status
        started = status.schedule_start_time or format_time(now)
        return msgspec.structs.replace(
            status, phase=SCHEDULING, occupied_by=owners(pods[0]) if pods else "", schedule_start_time=started
        )
    phases = [pod.status.phase for pod in pods]
    running, succeeded, failed = (phases.count(each) for each in ("Running", "Succeeded", "Failed"))
    return msgspec.structs.replace(
        status,
        phase=_phase(min_member, len(pods), running, succeeded, failed),
        running=running,
        succeeded=succeeded,
        failed=failed,
    )


def _phase(min_member: int, pods: int, running: int, succeeded: int, failed: int) -> str:
    if pods < min_member:
        return PENDING
    if succeeded >= min_member:
        return FINISHED
    if failed and failed + running + succeeded >= min_member:
        return FAILED
    return SCHEDULING if succeeded + running < min_member else RUNNING


def owners(pod: Pod) -> str:
    """The owners of a pod as `occupiedBy` has them: "namespace/name", sorted, with commas."""
    return ",".join(sorted(f"{pod.namespace}/{owner.name}" for owner in pod.metadata.owner_references))


def read_status(group: JsonObject) -> PodGroupStatus:
    """The status of a PodGroup as the API server has it."""
    return msgspec.convert(group.get("status") or {}, PodGroupStatus)


def min_member_of(group: JsonObject) -> int:
    """`spec.minMember`; 0 where it is not given."""
    value = (group.get("spec") or {}).get("minMember") or 0
    return value if isinstance(value, int) else 0


class PodGroupController:
    """A `Controller` of PodGroups."""

    name = "podgroup"
    resource: ApiResource[JsonObject] = ApiResource("/apis/scheduling.x-k8s.io/v1alpha1/podgroups")
    pods = ApiResource("/api/v1/pods", Pod, {"labelSelector": POD_GROUP_LABEL})

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def group_of_pod(self, pod: Pod) -> Key:
        return pod.namespace, pod.metadata.labels.get(POD_GROUP_LABEL, "")

    def group_of(self, item: JsonObject) -> Key:
        return item["metadata"]["namespace"], item["metadata"]["name"]

    def status(self, item: JsonObject, pods: Collection[Pod]) -> JsonObject | None:
        before = read_status(item)
        after = next_status(before, min_member_of(item), list(pods), self._clock.now())
        return None if after == before else msgspec.to_builtins(after)
