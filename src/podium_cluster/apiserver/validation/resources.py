"""Validates requests and limits of containers: names, amounts, and that no request is above its limit."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final

from kubecel.names import qualified_name_errors
from kubecel.quantity import canonical, parse
from podium.kube.printable import shortened
from podium_cluster.apiserver.errors import duplicate, field_forbidden, invalid_value, required
from podium_cluster.apiserver.validation.wording import NEGATIVE, Causes, Obj, dns_label, each, not_found

HUGE_PAGES: Final = "hugepages-"
CONTAINER_RESOURCES: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
STANDARD_RESOURCES: Final = frozenset(
    {
        *CONTAINER_RESOURCES,
        *(f"{side}.{name}" for side in ("requests", "limits") for name in CONTAINER_RESOURCES),
        *("pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps", "storage"),
        *("persistentvolumeclaims", "requests.storage", "services.nodeports", "services.loadbalancers"),
    }
)
INTEGER_RESOURCES: Final = frozenset(
    {
        *("pods", "resourcequotas", "services", "replicationcontrollers", "secrets", "configmaps"),
        *("persistentvolumeclaims", "services.nodeports", "services.loadbalancers"),
    }
)
_SHOWN_NAMES: Final = 1000
"""Characters of the names that a refusal lists."""
_NANO: Final = 10**9


def is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


def is_extended(name: str) -> bool:
    return not (is_native(name) or name.startswith("requests.")) and not qualified_name_errors(f"requests.{name}")


def may_overcommit(name: str) -> bool:
    return is_native(name) and not name.startswith(HUGE_PAGES)


def resource_amount(field: str, name: str, quantity: Any) -> Causes:
    """An amount that is not negative, and whole where only whole ones make sense."""
    value = parse(quantity)
    if value < 0:
        yield invalid_value(field, canonical(quantity), NEGATIVE)
    if value % _NANO and (name in INTEGER_RESOURCES or is_extended(name)):
        yield invalid_value(field, canonical(quantity), "must be an integer")


def container_resource_name(field: str, name: str) -> Causes:
    complaints = qualified_name_errors(name)
    yield from each(field, name, complaints)
    if "/" not in name:
        if not complaints and name not in STANDARD_RESOURCES and not name.startswith(HUGE_PAGES):
            yield invalid_value(field, name, "must be a standard resource type or fully qualified")
        if name not in CONTAINER_RESOURCES and not name.startswith(HUGE_PAGES):
            yield invalid_value(field, name, "must be a standard resource for containers")
    elif not is_native(name) and not is_extended(name):
        yield invalid_value(field, name, "doesn't follow extended resource name standard")


def requirements(
    path: str,
    resources: Obj,
    claim_names: Collection[str] = (),
    check_name: Callable[[str, str], Causes] = container_resource_name,
) -> Causes:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for name, quantity in limits.items():
        yield from _one(f"{path}.limits[{name}]", name, quantity, check_name)
    for name, quantity in requests.items():
        field = f"{path}.requests[{name}]"
        yield from check_name(field, name)
        yield from resource_amount(field, name, quantity)
        if name in limits:
            yield from _against_limit(path, name, quantity, limits[name])
        elif not may_overcommit(name):
            yield required(f"{path}.limits", "Limit must be set for non overcommitable resources")
        yield from _huge_pages(field, name, quantity)
    named = {*limits, *requests}
    if any(name.startswith(HUGE_PAGES) for name in named) and not named & {"cpu", "memory"}:
        yield field_forbidden(path, "HugePages require cpu or memory")
    if resources.get("claims"):
        yield from _claims(f"{path}.claims", resources["claims"], claim_names)


def _one(field: str, name: str, quantity: Any, check_name: Callable[[str, str], Causes]) -> Causes:
    yield from check_name(field, name)
    yield from resource_amount(field, name, quantity)
    yield from _huge_pages(field, name, quantity)


def _against_limit(path: str, name: str, request: Any, limit: Any) -> Causes:
    requested, allowed = parse(request), parse(limit)
    if requested != allowed and not may_overcommit(name):
        detail = f"must be equal to {name} limit of {canonical(limit)}"
        yield invalid_value(f"{path}.requests", canonical(request), detail)
    elif requested > allowed:
        detail = f"must be less than or equal to {name} limit of {canonical(limit)}"
        yield invalid_value(f"{path}.requests", canonical(request), detail)


def _huge_pages(field: str, name: str, quantity: Any) -> Causes:
    if not name.startswith(HUGE_PAGES):
        return
    try:
        size = parse(name.removeprefix(HUGE_PAGES))
    except ValueError:
        size = 0
    if size <= 0 or size % _NANO or parse(quantity) % size:
        shown = canonical(quantity)
        yield invalid_value(field, shown, f"{shown} is not positive integer multiple of {name}")


def _claims(path: str, claims: list[dict[str, Any]], known: Collection[str]) -> Causes:
    seen: set[str] = set()
    in_part: set[str] = set()
    """Claims of which only a request is used."""
    shown = shortened(", ".join(sorted(known)), _SHOWN_NAMES)
    for at, claim in enumerate(claims):
        field, name, request = f"{path}[{at}]", claim.get("name", ""), claim.get("request", "")
        if not name:
            yield required(field)
            continue
        if name in seen:
            yield duplicate(field, name)
        else:
            if request:
                yield from dns_label(f"{field}.request", request)
            key = f"{name}/{request}" if request else name
            if key in seen:
                yield duplicate(field, key)
            elif not request and name in in_part:
                yield duplicate(field, name)
            seen.add(key)
            if request:
                in_part.add(name)
        if name not in known:
            detail = "must be one of the names in pod.spec.resourceClaims"
            detail += ": " + shown if known else " which is empty"
            yield not_found(field, name, detail)
