"""Validates nodes: taints, amounts, pod CIDRs, and what stays as it was."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any, Final

from podium_cluster.apiserver.errors import duplicate, field_forbidden, invalid_value
from podium_cluster.apiserver.writes.validation.placement import taints
from podium_cluster.apiserver.writes.validation.resources import resource_amount
from podium_cluster.apiserver.writes.validation.wording import Causes, Obj

_CIDR_FIXED: Final = 'node updates may not change podCIDR except from "" to valid'
_PROVIDER_FIXED: Final = 'node updates may not change providerID except from "" to valid'


def node(obj: Obj) -> Causes:
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


def node_update(new: Obj, old: Obj) -> Causes:
    yield from node(new)
    yield from node_status_update(new, old)


def node_status_update(new: Obj, old: Obj) -> Causes:
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
        yield field_forbidden("spec.providerID", _PROVIDER_FIXED)
    if "taints" in after:
        yield from taints("metadata.taints", after["taints"])


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
