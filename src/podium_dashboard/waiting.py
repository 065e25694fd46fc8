"""Shows the pods that wait: as `podium queue` does, with what their scheduler last said, grouped by that."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

import msgspec

from podium.kube import Pod
from podium.run.dashboard import SchedulerView
from podium.run.scheduler_pages import MOST, QueueQuestion, queue_of
from podium_dashboard.records import ReasonGroup, WaitingPodRow
from podium_dashboard.viewer import Viewer

NAMED: Final = 5
"""Pods that a group names."""
SHOWN: Final = 500


class WaitingRows(NamedTuple):
    """The pods that a viewer may see, in the order of `podium queue`; and how many others wait."""

    rows: list[WaitingPodRow]
    hidden: int


def waiting_pods(viewer: Viewer, limit: int = SHOWN) -> Callable[[SchedulerView], WaitingRows]:
    """Reads the queue; what it gives is to be called where the scheduler may be read."""

    def take(view: SchedulerView) -> WaitingRows:
        page = queue_of(view.engine, view.now, QueueQuestion("", MOST), leads=view.leads)
        seen = [each for each in page["pods"] if viewer.sees_key(each["pod"])]
        rows = [msgspec.convert(each, WaitingPodRow) for each in seen[:limit]]
        for row in rows:
            pod = view.engine.cluster.objects.pending_pods.get(row.pod)
            if pod is not None:
                row.owner = owner_of(pod)
                row.reason = row.message or condition_message(pod) or view.messages.get(row.pod, "")
        return WaitingRows(rows, sum(page["counts"].values()) - len(seen) if not viewer.everything else 0)

    return take


def owner_of(pod: Pod) -> str:
    """The workload that made the pod, as "Kind/name"."""
    controller = pod.metadata.controller
    return "" if controller is None else f"{controller.kind}/{controller.name}"


def condition_message(pod: Pod) -> str:
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
