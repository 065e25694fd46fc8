"""Validates kinds with few rules each: config maps, secrets, leases, priority classes, disruption budgets, events."""

from __future__ import annotations

from base64 import b64decode
from typing import Any, Final

from kubecel.names import qualified_name_errors
from podium_cluster.apiserver.errors import field_forbidden, immutable, invalid_value, not_supported, required
from podium_cluster.apiserver.writes.validation.wording import (
    Causes,
    Obj,
    at_most_all,
    config_key,
    dns_subdomain,
    each,
    int_or_percent,
    selector,
    shown_selector,
    too_long,
)

MOST_BYTES: Final = 1024 * 1024
HIGHEST_USER_PRIORITY: Final = 1_000_000_000
SYSTEM_CLASSES: Final = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
_IMMUTABLE: Final = "field is immutable when `immutable` is set"
_SECRET_KEYS: Final = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
}


def config_map(obj: Obj) -> Causes:
    data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
    for key in data:
        yield from config_key(f"data[{key}]", key)
        if key in binary:
            yield invalid_value(f"data[{key}]", key, "duplicate of key present in binaryData")
    for key in binary:
        yield from config_key(f"binaryData[{key}]", key)
    size = sum(len(value.encode()) for value in data.values()) + sum(map(_decoded_size, binary.values()))
    if size > MOST_BYTES:
        yield too_long("[]", MOST_BYTES)


def config_map_update(new: Obj, old: Obj) -> Causes:
    yield from _unchanged_when_immutable(new, old, ("data", "binaryData"))
    yield from config_map(new)


def secret(obj: Obj) -> Causes:
    data = obj.get("data") or {}
    for key in data:
        yield from config_key(f"data[{key}]", key)
    if sum(map(_decoded_size, data.values())) > MOST_BYTES:
        yield too_long("data", MOST_BYTES)
    for key in _SECRET_KEYS.get(obj.get("type", ""), ()):
        if key not in data:
            yield required(f"data[{key}]")


def secret_update(new: Obj, old: Obj) -> Causes:
    if new.get("type", "") != old.get("type", ""):
        yield immutable("type", new.get("type", ""))
    yield from _unchanged_when_immutable(new, old, ("data",))
    yield from secret(new)


def _unchanged_when_immutable(new: Obj, old: Obj, fields: tuple[str, ...]) -> Causes:
    if not old.get("immutable"):
        return
    if not new.get("immutable"):
        yield field_forbidden("immutable", _IMMUTABLE)
    for name in fields:
        if (new.get(name) or {}) != (old.get(name) or {}):
            yield field_forbidden(name, _IMMUTABLE)


def lease(obj: Obj) -> Causes:
    spec = obj.get("spec") or {}
    duration, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if duration is not None and duration <= 0:
        yield invalid_value("spec.leaseDurationSeconds", duration, "must be greater than 0")
    if transitions is not None and transitions < 0:
        yield invalid_value("spec.leaseTransitions", transitions, "must be greater than or equal to 0")


def lease_update(new: Obj, _: Obj) -> Causes:
    yield from lease(new)


def priority_class(obj: Obj) -> Causes:
    name, value = obj["metadata"].get("name", ""), obj.get("value", 0)
    if name.startswith("system-"):
        yield from _system_class(name, value, default=bool(obj.get("globalDefault")))
    elif value > HIGHEST_USER_PRIORITY:
        detail = f"maximum allowed value of a user defined priority is {HIGHEST_USER_PRIORITY}"
        yield field_forbidden("value", detail)
    policy = obj.get("preemptionPolicy")
    if policy is not None and policy not in ("PreemptLowerPriority", "Never"):
        yield not_supported("preemptionPolicy", policy, ("PreemptLowerPriority", "Never"))


def _system_class(name: str, value: int, *, default: bool) -> Causes:
    expected = SYSTEM_CLASSES.get(name)
    if expected is None:
        why = f"{name} is not a known system priority class"
    elif value != expected:
        why = f"value of {name} PriorityClass must be {expected}"
    elif default:
        why = f"globalDefault of {name} PriorityClass must be false"
    else:
        return
    detail = f"priority class names with 'system-' prefix are reserved for system use only. error: {why}"
    yield field_forbidden("metadata.name", detail)


def priority_class_update(new: Obj, old: Obj) -> Causes:
    if new.get("value", 0) != old.get("value", 0):
        yield field_forbidden("value", "may not be changed in an update.")
    if new.get("preemptionPolicy") != old.get("preemptionPolicy"):
        yield immutable("preemptionPolicy", new.get("preemptionPolicy"))


def disruption_budget(obj: Obj) -> Causes:
    spec = obj.get("spec") or {}
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    if least is not None and most is not None:
        shown = {
            "MinAvailable": least,
            "Selector": shown_selector(spec.get("selector")),
            "MaxUnavailable": most,
            "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
        }
        yield invalid_value("spec", shown, "minAvailable and maxUnavailable cannot be both set")
    for name, value in (("minAvailable", least), ("maxUnavailable", most)):
        if value is not None:
            yield from int_or_percent(f"spec.{name}", value)
            yield from at_most_all(f"spec.{name}", value)
    yield from selector("spec.selector", spec.get("selector"))
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None and policy not in ("AlwaysAllow", "IfHealthyBudget"):
        yield not_supported("spec.unhealthyPodEvictionPolicy", policy, ("AlwaysAllow", "IfHealthyBudget"))


def disruption_budget_update(new: Obj, _: Obj) -> Causes:
    yield from disruption_budget(new)


def event(obj: Obj) -> Causes:
    """In the fields of the core group; what comes through the other group is held to more."""
    modern = str(obj.get("apiVersion", "")).startswith("events.k8s.io/")
    namespace = obj["metadata"].get("namespace", "")
    about = (obj.get("involvedObject") or {}).get("namespace", "")
    mismatch = invalid_value("involvedObject.namespace", about, "does not match event.namespace")
    if not obj.get("eventTime"):
        if namespace != about and (about or namespace not in ("", "default")):
            yield mismatch
    else:
        if not about and namespace not in ("default", "kube-system"):
            yield mismatch
        yield from _reported_event(obj, "reportingController" if modern else "reportingComponent")
    yield from dns_subdomain("namespace", namespace)
    if modern:
        yield from _strict_event(obj)


def _strict_event(obj: Obj) -> Causes:
    if not obj.get("eventTime"):
        yield required("eventTime")
    if obj.get("type") not in ("Normal", "Warning"):
        yield invalid_value("type", "", f"has invalid value: {obj.get('type', '')}")
    for name in ("firstTimestamp", "lastTimestamp", "count", "source"):
        if obj.get(name):
            yield invalid_value(name, "", "needs to be unset")


def _reported_event(obj: Obj, spelt: str) -> Causes:
    reporter = obj.get("reportingComponent", "")
    if not reporter:
        yield required(spelt)
    yield from each(spelt, reporter, qualified_name_errors(reporter))
    for name, limit in (("reportingInstance", 128), ("action", 128), ("reason", 128)):
        value = obj.get(name, "")
        if not value:
            yield required(name)
        if len(value.encode()) > limit:
            yield invalid_value(name, "", f"can have at most {limit} characters")
    if len(obj.get("message", "").encode()) > 1024:
        yield invalid_value("message", "", "can have at most 1024 characters")


def _decoded_size(value: Any) -> int:
    try:
        return len(b64decode(value))
    except ValueError:
        return 0
