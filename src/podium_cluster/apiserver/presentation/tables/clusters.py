"""Tabulates what belongs to the cluster itself: nodes, namespaces, leases, accounts, and what limits or ranks pods."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.presentation.tables.columns import (
    AGE,
    NAME,
    Cells,
    KindTable,
    TableColumn,
    Tables,
    boolean,
    integer,
    wide,
)
from podium_cluster.apiserver.presentation.tables.formats import NONE, UNKNOWN, age, condition, quantity

_NODE: Final = (
    NAME,
    TableColumn("Status", "Whether the node is ready, and whether pods may be placed on it."),
    TableColumn("Roles", "The node's roles, from its labels."),
    AGE,
    TableColumn("Version", "The version of the node's kubelet."),
    wide("Internal-IP", "The node's address inside the cluster."),
    wide("External-IP", "The node's address outside the cluster."),
    wide("OS-Image", "The node's operating system."),
    wide("Kernel-Version", "The version of its kernel, with the architecture."),
    wide("Container-Runtime", "What runs its containers."),
)
_NAMESPACE: Final = (NAME, TableColumn("Status", "Whether the namespace is in use or going."), AGE)
_LEASE: Final = (NAME, TableColumn("Holder", "Who holds the lease."), AGE)
_SERVICE_ACCOUNT: Final = (NAME, AGE)
_QUOTA: Final = (
    NAME,
    TableColumn("Request", "What is used and what may be used, of requests and counts."),
    TableColumn("Limit", "What is used and what may be used, of limits."),
    AGE,
)
_PRIORITY_CLASS: Final = (
    NAME,
    integer("Value", "The priority that pods of the class get."),
    boolean("Global-Default", "Whether pods without a class get this one."),
    AGE,
    TableColumn("PreemptionPolicy", "Whether pods of the class may preempt others."),
)
_RUNTIME_CLASS: Final = (NAME, TableColumn("Handler", "What runs the containers of the class."), AGE)
_DISRUPTION_BUDGET: Final = (
    NAME,
    TableColumn("Min Available", "How many pods must stay available."),
    TableColumn("Max Unavailable", "How many pods may be unavailable."),
    integer("Allowed Disruptions", "How many pods may be evicted now."),
    AGE,
)
_ROLE_LABEL: Final = "node-role.kubernetes.io/"


def _node(node: JsonObject, now: datetime) -> Cells:
    status = node.get("status") or {}
    info = status.get("nodeInfo") or {}
    kernel = info.get("kernelVersion") or UNKNOWN
    if info.get("architecture"):
        kernel += f" ({info['architecture']})"
    return [
        node["metadata"]["name"],
        _node_status(node, status),
        _roles(node["metadata"].get("labels") or {}),
        age(node, now),
        info.get("kubeletVersion", ""),
        _address(status, "InternalIP"),
        _address(status, "ExternalIP"),
        info.get("osImage") or UNKNOWN,
        kernel,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _node_status(node: JsonObject, status: JsonObject) -> str:
    ready = condition(status.get("conditions"), "Ready")
    word = {"": "Unknown", "True": "Ready"}.get(ready, "NotReady")
    return f"{word},SchedulingDisabled" if (node.get("spec") or {}).get("unschedulable") else word


def _roles(labels: Mapping[str, str]) -> str:
    roles = {key.removeprefix(_ROLE_LABEL) for key in labels if key.startswith(_ROLE_LABEL)}
    roles.add(labels.get("kubernetes.io/role", ""))
    return ",".join(sorted(roles - {""})) or NONE


def _address(status: JsonObject, kind: str) -> str:
    return next((each["address"] for each in status.get("addresses") or () if each.get("type") == kind), NONE)


def _namespace(obj: JsonObject, now: datetime) -> Cells:
    return [obj["metadata"]["name"], (obj.get("status") or {}).get("phase", ""), age(obj, now)]


def _lease(obj: JsonObject, now: datetime) -> Cells:
    return [obj["metadata"]["name"], (obj.get("spec") or {}).get("holderIdentity") or "", age(obj, now)]


def name_and_age(obj: JsonObject, now: datetime) -> Cells:
    return [obj["metadata"]["name"], age(obj, now)]


def _quota(obj: JsonObject, now: datetime) -> Cells:
    status = obj.get("status") or {}
    used, columns = status.get("used") or {}, {False: [], True: []}  # type: dict[str, str], dict[bool, list[str]]
    for resource, hard in sorted((status.get("hard") or {}).items()):
        text = f"{resource}: {quantity(used.get(resource))}/{quantity(hard)}"
        columns[resource.startswith("limits.")].append(text)
    return [obj["metadata"]["name"], ", ".join(columns[False]), ", ".join(columns[True]), age(obj, now)]


def _priority_class(obj: JsonObject, now: datetime) -> Cells:
    value, default = obj.get("value", 0), obj.get("globalDefault", False)
    return [obj["metadata"]["name"], value, default, age(obj, now), obj.get("preemptionPolicy", "")]


def _runtime_class(obj: JsonObject, now: datetime) -> Cells:
    return [obj["metadata"]["name"], obj.get("handler", ""), age(obj, now)]


def _disruption_budget(obj: JsonObject, now: datetime) -> Cells:
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    limits = ["N/A" if spec.get(field) is None else str(spec[field]) for field in ("minAvailable", "maxUnavailable")]
    return [obj["metadata"]["name"], *limits, status.get("disruptionsAllowed", 0), age(obj, now)]


TABLES: Final[Tables] = {
    ("", "Node"): KindTable(_NODE, _node),
    ("", "Namespace"): KindTable(_NAMESPACE, _namespace),
    ("", "ServiceAccount"): KindTable(_SERVICE_ACCOUNT, name_and_age),
    ("", "ResourceQuota"): KindTable(_QUOTA, _quota),
    ("coordination.k8s.io", "Lease"): KindTable(_LEASE, _lease),
    ("scheduling.k8s.io", "PriorityClass"): KindTable(_PRIORITY_CLASS, _priority_class),
    ("node.k8s.io", "RuntimeClass"): KindTable(_RUNTIME_CLASS, _runtime_class),
    ("policy", "PodDisruptionBudget"): KindTable(_DISRUPTION_BUDGET, _disruption_budget),
}
