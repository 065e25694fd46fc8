"""Shows gangs and quotas: who starts together and what of them is missing, and what of each quota is used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from podium.engine.gangs.explain_gang import gang_counts
from podium.kube.custom_object import POD_GROUP_LABEL
from podium.run.dashboard import SchedulerView
from podium_dashboard.access import Viewer
from podium_dashboard.pods import waiting_pods
from podium_dashboard.records import DashboardState, GangRow, GroupsAnswer, QuotaRow, WaitingPodRow

QUOTAS: Final = "elasticquotas.scheduling.x-k8s.io"
MOST_MEMBERS: Final = 20
"""Waiting members that a gang lists."""


def groups_answer(state: DashboardState, viewer: Viewer) -> Callable[[SchedulerView], GroupsAnswer]:
    """Reads the gangs and quotas of the namespaces that the viewer may see."""

    def take(view: SchedulerView) -> GroupsAnswer:
        waiting = _waiting_by_group(view, viewer)
        custom = view.engine.cluster.objects.custom
        quotas = [_quota(value) for value in custom.get(QUOTAS, ())]
        return GroupsAnswer(
            state=state,
            gangs=[
                GangRow(
                    key=gang.key,
                    minimum=gang.minimum,
                    members=gang.members,
                    assigned=gang.assigned,
                    waiting=waiting.get(gang.key, [])[:MOST_MEMBERS],
                )
                for gang in gang_counts(view.engine)
                if viewer.sees_key(gang.key)
            ],
            quotas=sorted((each for each in quotas if viewer.sees_key(each.key)), key=lambda each: each.key),
            reads_quotas=QUOTAS in custom,
        )

    return take


def _waiting_by_group(view: SchedulerView, viewer: Viewer) -> dict[str, list[WaitingPodRow]]:
    found: dict[str, list[WaitingPodRow]] = {}
    for row in waiting_pods(viewer, limit=10_000)(view).rows:
        pod = view.engine.cluster.objects.pending_pods.get(row.pod)
        if pod is None:
            continue
        group = pod.spec.scheduling_group
        name = pod.labels.get(POD_GROUP_LABEL, "") if group is None else group.pod_group_name
        if name:
            found.setdefault(f"{pod.namespace}/{name}", []).append(row)
    return found


class _Bounds(msgspec.Struct):
    min: dict[str, Any] = {}
    max: dict[str, Any] = {}


class _Used(msgspec.Struct):
    used: dict[str, Any] = {}


class _Name(msgspec.Struct):
    name: str = ""
    namespace: str = ""


class _QuotaObject(msgspec.Struct):
    metadata: _Name = msgspec.field(default_factory=_Name)
    spec: _Bounds = msgspec.field(default_factory=_Bounds)
    status: _Used = msgspec.field(default_factory=_Used)


def _quota(value: Any) -> QuotaRow:
    try:
        quota = msgspec.convert(value, _QuotaObject)
    except msgspec.ValidationError:
        quota = _QuotaObject()
    key = f"{quota.metadata.namespace}/{quota.metadata.name}"
    return QuotaRow(key=key, used=quota.status.used, min=quota.spec.min, max=quota.spec.max)
