"""Shows a pod: how it stands, and what happened to it."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from podium.kube import Pod
from podium.kube.requests import requested
from podium.run.dashboard import SchedulerView
from podium.run.pod_history import HistoryEntry
from podium.run.scheduler_pages import MOST, QueueQuestion, queue_of
from podium_dashboard.feed import entries_for
from podium_dashboard.records import DashboardState, PodDetails, PodEntry, WaitingPodRow
from podium_dashboard.viewer import Viewer
from podium_dashboard.waiting import condition_message, owner_of

MOST_SHOWN = 200
"""Entries of one pod's timeline."""


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
            waiting=None if node else waiting_row(view, pod),
            timeline=timeline,
        )

    return take


def waiting_row(view: SchedulerView, pod: Pod) -> WaitingPodRow | None:
    """How a pod stands in the queue, as `podium queue` says it; None while it is being tried."""
    page = queue_of(view.engine, view.now, QueueQuestion(pod.namespace, MOST), leads=view.leads)
    found = next((each for each in page["pods"] if each["pod"] == pod.key), None)
    if found is None:
        return None
    row = msgspec.convert(found, WaitingPodRow)
    row.owner = owner_of(pod)
    row.reason = row.message or condition_message(pod) or view.messages.get(pod.key, "")
    return row


def timeline_of(view: SchedulerView, viewer: Viewer, wanted: Callable[[HistoryEntry], bool]) -> list[PodEntry]:
    """The newest entries that are wanted, the oldest first."""
    if view.history is None:
        return []
    return entries_for([each for each in view.history if wanted(each)][-MOST_SHOWN:], viewer)
