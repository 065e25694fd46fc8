"""Tabulates PodGroups (scheduling.k8s.io/v1alpha2)."""

from datetime import datetime
from typing import Final

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.presentation.tables.columns import AGE, NAME, Cells, KindTable, TableColumn, Tables
from podium_cluster.apiserver.presentation.tables.formats import age

_POD_GROUP: Final = (
    NAME,
    TableColumn("Policy", "How the group is scheduled."),
    TableColumn("Workload", "The Workload it is made of."),
    TableColumn("Status", "Whether it is scheduled."),
    AGE,
)


def _pod_group(obj: JsonObject, now: datetime) -> Cells:
    spec, conditions = obj.get("spec") or {}, (obj.get("status") or {}).get("conditions") or ()
    by_type = {each["type"]: each for each in conditions}
    status = "Pending"
    if "PodGroupScheduled" in by_type:
        status = "Scheduled" if by_type["PodGroupScheduled"]["status"] == "True" else "Unschedulable"
    if "DisruptionTarget" in by_type:
        status = by_type["DisruptionTarget"].get("reason", "")
    policy = "Gang" if (spec.get("schedulingPolicy") or {}).get("gang") is not None else "Basic"
    template = spec.get("podGroupTemplateRef")
    workload = template["workload"]["workloadName"] if template else "<none>"
    return [obj["metadata"]["name"], policy, workload, status, age(obj, now)]


TABLES: Final[Tables] = {("scheduling.k8s.io", "PodGroup"): KindTable(_POD_GROUP, _pod_group)}
