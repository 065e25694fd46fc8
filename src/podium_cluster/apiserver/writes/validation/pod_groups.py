"""Validates PodGroups and Workloads (scheduling.k8s.io/v1alpha2), which are served while GenericWorkload is on."""

from __future__ import annotations

from typing import Any, Final

from kubecel.names import qualified_name_errors
from podium_cluster.apiserver.errors import Cause, duplicate, invalid_value, not_supported, required
from podium_cluster.apiserver.writes.validation.wording import Causes, Obj, each

MOST_TEMPLATES: Final = 8
MOST_KEYS: Final = 1
HIGHEST_PRIORITY: Final = 1_000_000_000
_POLICIES: Final = ("basic", "gang")
_MODES: Final = ("Pod", "PodGroup")


def pod_group(obj: Obj) -> Causes:
    yield from _group("spec", obj.get("spec") or {})


def pod_group_update(new: Obj, old: Obj) -> Causes:
    yield from pod_group(new)
    yield from _unchanged(new, old)


def workload(obj: Obj) -> Causes:
    templates: list[Any] = (obj.get("spec") or {}).get("podGroupTemplates") or []
    path = "spec.podGroupTemplates"
    if not templates:
        yield required(path)
    if len(templates) > MOST_TEMPLATES:
        yield _too_many(path, len(templates), f"{MOST_TEMPLATES} items")
        return
    names: set[str] = set()
    for number, template in enumerate(templates):
        name = template.get("name", "")
        if not name:
            yield required(f"{path}[{number}].name")
        elif name in names:
            yield duplicate(f"{path}[{number}]", {**template, "schedulingConstraints": None})
        names.add(name)
        yield from _group(f"{path}[{number}]", template)


def workload_update(new: Obj, old: Obj) -> Causes:
    yield from workload(new)
    yield from _unchanged(new, old)


def _unchanged(new: Obj, old: Obj) -> Causes:
    after, before = new.get("spec") or {}, old.get("spec") or {}
    for field in sorted({*after, *before}):
        if after.get(field) != before.get(field):
            yield invalid_value(f"spec.{field}", None, "field is immutable")


def _group(path: str, spec: Obj) -> Causes:
    policy = spec.get("schedulingPolicy") or {}
    given = [name for name in _POLICIES if policy.get(name) is not None]
    options = ", ".join(f"`{name}`" for name in _POLICIES)
    if not given:
        yield invalid_value(f"{path}.schedulingPolicy", "", f"must specify one of: {options}")
    elif len(given) > 1:
        shown = f"{{{', '.join(given)}}}"
        yield invalid_value(f"{path}.schedulingPolicy", shown, f"must specify exactly one of: {options}")
    if "gang" in given:
        least = policy["gang"].get("minCount", 0)
        where = f"{path}.schedulingPolicy.gang.minCount"
        if not least:
            yield required(where)
        elif least < 1:
            yield invalid_value(where, least, "must be greater than or equal to 1")
    yield from _constraints(f"{path}.schedulingConstraints.topology", spec)
    mode = spec.get("disruptionMode")
    if mode is not None and mode not in _MODES:
        yield not_supported(f"{path}.disruptionMode", mode, _MODES)
    priority = spec.get("priority")
    if priority is not None and priority > HIGHEST_PRIORITY:
        yield invalid_value(f"{path}.priority", priority, f"must be less than or equal to {HIGHEST_PRIORITY}")


def _constraints(path: str, spec: Obj) -> Causes:
    keys: list[Any] = (spec.get("schedulingConstraints") or {}).get("topology") or []
    if len(keys) > MOST_KEYS:
        yield _too_many(path, len(keys), f"{MOST_KEYS} item")
        return
    for number, rule in enumerate(keys):
        key = rule.get("key", "")
        if not key:
            yield required(f"{path}[{number}].key")
        else:
            yield from each(f"{path}[{number}].key", key, qualified_name_errors(key))


def _too_many(path: str, number: int, most: str) -> Cause:
    return Cause("FieldValueTooMany", f"Too many: {number}: must have at most {most}", path)
