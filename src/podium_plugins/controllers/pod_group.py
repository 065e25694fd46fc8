"""Keeps the status of PodGroups (scheduling.x-k8s.io): the phase, and how many pods run, have succeeded or failed.

    (new) → Pending → Scheduling → Running → Finished
                ↑___________|_________|  ↘ Failed

A group is Pending until it has `minMember` pods, Scheduling until so many run or have succeeded, then Running. It ends
as Finished when `minMember` pods have succeeded, else as Failed when a pod has failed and as many have run at all. A
group that has had its pods for 48 hours and runs none gets the event `Timeout`. Without a usable `minMember`, one pod
counts as enough.

Differs from scheduler-plugins: pods are counted in the group's own namespace only, so that groups of one name in two
namespaces do not share pods; `scheduleStartTime` is written when a group first has its pods, so that `Timeout` can
happen, and a group that had it is still kept up to date.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from podium.client import ApiResource
from podium.controllers.controller import WARNING, EventNote, ReconcileResult, Related, RelatedCollection, invalid
from podium.framework.clock import Clock
from podium.kube import Pod
from podium.kube.custom_object import POD_GROUP_LABEL
from podium.kube.json_object import JsonObject
from podium.kube.meta import format_time, parse_time
from podium_plugins.coscheduling.pod_group import group_key, read_group

PENDING: Final = "Pending"
SCHEDULING: Final = "Scheduling"
RUNNING: Final = "Running"
FINISHED: Final = "Finished"
FAILED: Final = "Failed"
ENDED: Final = frozenset({FINISHED, FAILED})
TIMEOUT: Final = 48 * 3600.0
"""Seconds after which a group that has its pods and runs none is worth a warning."""
TIMED_OUT: Final = EventNote(WARNING, "Timeout", "schedule time longer than 48 hours")


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


def seconds_until_timeout(status: PodGroupStatus, now: float) -> float | None:
    """How long a group that has its pods may yet take to start one; None where that does not count."""
    if status.phase not in (PENDING, SCHEDULING) or status.running or not status.schedule_start_time:
        return None
    return parse_time(status.schedule_start_time) + TIMEOUT - now


class PodGroupController:
    """A `Controller` of PodGroups."""

    name = "podgroup"
    kind = "PodGroup"
    resource: ApiResource[JsonObject] = ApiResource("/apis/scheduling.x-k8s.io/v1alpha1/podgroups")
    written = ("podgroups/status",)
    fetched = None

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        pods = ApiResource("/api/v1/pods", Pod, {"labelSelector": POD_GROUP_LABEL})
        self.related = (RelatedCollection(pods, group_key, _key),)

    def reconcile(self, item: JsonObject, related: Related) -> ReconcileResult:
        group, before, now = read_group(item), read_status(item), self._clock.now()
        problem = None
        if isinstance(group, str):
            problem, least = invalid(f"{group}; its pods are scheduled one by one"), 1
        elif group.min_member < 1:
            text = "spec.minMember is missing: write how many pods start together; now they are scheduled one by one"
            problem, least = invalid(text), 1
        else:
            least = group.min_member
        after = next_status(before, least, list(related["pods"]), now)
        left = seconds_until_timeout(after, now)
        return ReconcileResult(
            status=None if after == before else msgspec.to_builtins(after),
            event=TIMED_OUT if left is not None and left <= 0 else None,
            problem=problem,
            due=left if left is not None and left > 0 else None,
        )


def _key(group: JsonObject) -> str:
    return f"{group['metadata']['namespace']}/{group['metadata']['name']}"
