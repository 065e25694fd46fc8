"""Nodes: who creates one may set its status too, as a kubelet does; podCIDR is the first of podCIDRs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any, Final

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import duplicate, field_forbidden, invalid_value
from podium_cluster.apiserver.kind import STATUS, Defaults, Fields, FieldValues, boolean_field, built_in_kind
from podium_cluster.apiserver.kind_record import KindRecord, KindRules
from podium_cluster.apiserver.table_cells import (
    AGE,
    NAME,
    NONE,
    UNKNOWN,
    Cells,
    KindTable,
    TableColumn,
    age,
    condition,
    wide,
)
from podium_cluster.apiserver.validation.placement import taints
from podium_cluster.apiserver.validation.resources import resource_amount
from podium_cluster.apiserver.validation.wording import Causes, Obj
from podium_cluster.apiserver.write_context import WriteContext

_CIDR_FIXED: Final = 'node updates may not change podCIDR except from "" to valid'
_COLUMNS: Final = (
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
_ROLE_LABEL: Final = "node-role.kubernetes.io/"


def _field_values(obj: dict[str, Any]) -> FieldValues:
    return (boolean_field((obj.get("spec") or {}).get("unschedulable")),)


def _status_defaults(status: dict[str, Any]) -> None:
    if "allocatable" not in status and status.get("capacity"):
        status["allocatable"] = dict(status["capacity"])


NODE: Final = built_in_kind(
    "v1",
    "Node nodes",
    STATUS,
    short="no",
    cluster=True,
    fields=Fields(("spec.unschedulable",), _field_values),
    defaults=Defaults(rules={"core.v1.NodeStatus": _status_defaults}),
)


def _prepare_for_create(node: JsonObject, context: WriteContext) -> None:
    _agree_on_cidrs(node)


def _prepare_for_update(new: JsonObject, old: JsonObject, context: WriteContext) -> None:
    _agree_on_cidrs(new)


def _agree_on_cidrs(node: JsonObject) -> None:
    spec = node.get("spec")
    if not spec:
        return
    if spec.get("podCIDR") and (spec.get("podCIDRs") or [""])[0] != spec["podCIDR"]:
        spec["podCIDRs"] = [spec["podCIDR"]]
    elif spec.get("podCIDRs"):
        spec["podCIDR"] = spec["podCIDRs"][0]


def _check(obj: Obj) -> Causes:
    spec = obj.get("spec") or {}
    if "taints" in spec:  # kube-apiserver names them under metadata
        yield from taints("metadata.taints", spec["taints"])
    yield from _amounts(obj)
    cidrs = spec.get("podCIDRs") or []
    families: list[type] = []
    for at, value in enumerate(cidrs):
        network = _network(value)
        if network is None:
            detail = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
            yield invalid_value(f"spec.podCIDRs[{at}]", value, detail)
        else:
            families.append(type(network))
    if len(cidrs) > 2 or len(families) != len(set(families)):
        detail = "may specify no more than one CIDR for each IP family"
        yield invalid_value("spec.podCIDRs", cidrs, detail)


def _check_update(new: Obj, old: Obj) -> Causes:
    yield from _check(new)
    yield from _check_status(new, old)


def _check_status(new: Obj, old: Obj) -> Causes:
    yield from _amounts(new)
    yield from _addresses((new.get("status") or {}).get("addresses") or [])
    after, before = new.get("spec") or {}, old.get("spec") or {}
    had, has = before.get("podCIDRs") or [], after.get("podCIDRs") or []
    if had and len(had) != len(has):
        yield field_forbidden("spec.podCIDRs", _CIDR_FIXED)
    elif had:
        for mine, theirs in zip(has, had, strict=True):
            if mine != theirs:
                yield field_forbidden("spec.podCIDRs", _CIDR_FIXED)
    if before.get("providerID") and before["providerID"] != after.get("providerID", ""):
        verb = "modified" if after.get("providerID") else "cleared"
        yield invalid_value("spec.providerID", None, f"field cannot be {verb} once set")


def _amounts(obj: Obj) -> Causes:
    status = obj.get("status") or {}
    for part in ("capacity", "allocatable"):
        for name, quantity in (status.get(part) or {}).items():
            yield from resource_amount(f"status.{part}.{name}", name, quantity)


def _addresses(addresses: list[dict[str, Any]]) -> Causes:
    seen: set[tuple[str, str]] = set()
    for at, address in enumerate(addresses):
        key = (address.get("type", ""), address.get("address", ""))
        if key in seen:
            yield duplicate(f"status.addresses[{at}]", {"Type": key[0], "Address": key[1]})
        seen.add(key)


def _network(text: str) -> IPv4Network | IPv6Network | None:
    if "/" not in text:
        return None
    try:
        return ip_network(text, strict=False)
    except ValueError:
        return None


def _cells(node: JsonObject, now: datetime) -> Cells:
    status = node.get("status") or {}
    info = status.get("nodeInfo") or {}
    kernel = info.get("kernelVersion") or UNKNOWN
    if info.get("architecture"):
        kernel += f" ({info['architecture']})"
    return [
        node["metadata"]["name"],
        _status(node, status),
        _roles(node["metadata"].get("labels") or {}),
        age(node, now),
        info.get("kubeletVersion", ""),
        _address(status, "InternalIP"),
        _address(status, "ExternalIP"),
        info.get("osImage") or UNKNOWN,
        kernel,
        info.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _status(node: JsonObject, status: JsonObject) -> str:
    ready = condition(status.get("conditions"), "Ready")
    word = {"": "Unknown", "True": "Ready"}.get(ready, "NotReady")
    return f"{word},SchedulingDisabled" if (node.get("spec") or {}).get("unschedulable") else word


def _roles(labels: Mapping[str, str]) -> str:
    roles = {key.removeprefix(_ROLE_LABEL) for key in labels if key.startswith(_ROLE_LABEL)}
    roles.add(labels.get("kubernetes.io/role", ""))
    return ",".join(sorted(roles - {""})) or NONE


def _address(status: JsonObject, kind: str) -> str:
    return next((each["address"] for each in status.get("addresses") or () if each.get("type") == kind), NONE)


NODE_RECORD: Final = KindRecord(
    NODE,
    KindRules(
        prepare_for_create=_prepare_for_create,
        prepare_for_update=_prepare_for_update,
        validate=_check,
        validate_update=_check_update,
        validate_status=_check_status,
        status_on_create=True,
        empty_status={},
    ),
    KindTable(_COLUMNS, _cells),
)
