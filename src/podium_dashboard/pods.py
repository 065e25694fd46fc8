"""Shows pods: those that wait, as `podium queue` does and grouped by why; and one, with what happened to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from podium.kube import Pod
from podium.kube.requests import requested
from podium.run.dashboard import SchedulerView
from podium.run.pod_history import HistoryEntry
from podium.run.scheduler_pages import MOST, QueueQuestion, queue_of
from podium_dashboard.access import Viewer
from podium_dashboard.feed import entries_for
from podium_dashboard.records import DashboardState, PodDetails, PodEntry, ReasonGroup, WaitingPodRow

NAMED: Final = 5
"""Pods that a group names."""
SHOWN: Final = 500
MOST_SHOWN: Final = 200
"""Entries of one timeline."""


class WaitingRows(NamedTuple):
    """The pods that a viewer may see, in the order of `podium queue`; and how many others wait."""

    rows: list[WaitingPodRow]
    hidden: int


def waiting_pods(viewer: Viewer, limit: int = SHOWN) -> Callable[[SchedulerView], WaitingRows]:
    """Reads the queue; what it gives is to be called where the scheduler may be read."""

    def take(view: SchedulerView) -> WaitingRows:
        page = queue_of(view.engine, view.now, QueueQuestion("", MOST), leads=view.leads)
        seen = [each for each in page["pods"] if viewer.sees_key(each["pod"])]
        rows = [_row(view, each) for each in seen[:limit]]
        return WaitingRows(rows, sum(page["counts"].values()) - len(seen) if not viewer.everything else 0)

    return take


def _row(view: SchedulerView, queued: Mapping[str, Any]) -> WaitingPodRow:
    """What `podium queue` says of a pod, with its workload and why it waits."""
    row = msgspec.convert(queued, WaitingPodRow)
    pod = view.engine.cluster.objects.pending_pods.get(row.pod)
    if pod is not None:
        row.owner = owner_of(pod)
        row.reason = row.message or _condition_message(pod) or view.messages.get(row.pod, "")
    return row


def owner_of(pod: Pod) -> str:
    """The workload that made the pod, as "Kind/name"."""
    controller = pod.metadata.controller
    return "" if controller is None else f"{controller.kind}/{controller.name}"


def _condition_message(pod: Pod) -> str:
    """What the scheduler last wrote into the pod's condition."""
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False":
            return condition.message
    return ""


def groups_of(rows: Iterable[WaitingPodRow]) -> list[ReasonGroup]:
    """Pods by reason, the most common first."""
    found: dict[str, ReasonGroup] = {}
    for row in rows:
        reason = row.reason or _UNTRIED.get(row.queue, "not tried yet")
        group = found.setdefault(reason, ReasonGroup(reason=reason, plugins=[], count=0, pods=[]))
        group.count += 1
        if len(group.pods) < NAMED:
            group.pods.append(row.pod)
        for each in row.waits_for:
            if each.plugin not in group.plugins:
                group.plugins.append(each.plugin)
    return sorted(found.values(), key=lambda group: (-group.count, group.reason))


_UNTRIED: Final = {"gated": "held by a scheduling gate", "permit": "held at Permit"}


def pod_details(
    namespace: str, name: str, state: DashboardState, viewer: Viewer
) -> Callable[[SchedulerView], PodDetails | None]:
    """Reads a pod; None where the scheduler knows none of that name, or the viewer may not see it."""
    key = f"{namespace}/{name}"

    def take(view: SchedulerView) -> PodDetails | None:
        if not viewer.sees(namespace):
            return None
        cluster = view.engine.cluster
        pod, node = cluster.objects.pending_pods.get(key), ""
        placed = next((each for each in cluster.pods.values() if each.pod.key == key), None)
        if placed is not None:
            pod, node = placed.pod, cluster.names[placed.row]
        timeline = timeline_of(view, viewer, lambda entry: entry.pod == key)
        if pod is None:
            return None
        return PodDetails(
            state=state,
            pod=key,
            node=node,
            nominated=pod.status.nominated_node_name,
            phase=pod.status.phase or "Pending",
            created=pod.metadata.creation_timestamp or "",
            owner=owner_of(pod),
            priority=pod.priority,
            scheduler=pod.spec.scheduler_name,
            requests=requested(pod),
            labels=pod.labels,
            waiting=None if node else _waiting_row(view, pod),
            timeline=timeline,
        )

    return take


def _waiting_row(view: SchedulerView, pod: Pod) -> WaitingPodRow | None:
    """How a pod stands in the queue; None while it is being tried."""
    page = queue_of(view.engine, view.now, QueueQuestion(pod.namespace, MOST), leads=view.leads)
    return next((_row(view, each) for each in page["pods"] if each["pod"] == pod.key), None)


def timeline_of(view: SchedulerView, viewer: Viewer, wanted: Callable[[HistoryEntry], bool]) -> list[PodEntry]:
    """The newest entries that are wanted, the oldest first."""
    if view.history is None:
        return []
    return entries_for([each for each in view.history if wanted(each)][-MOST_SHOWN:], viewer)
