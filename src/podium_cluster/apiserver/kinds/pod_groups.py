"""PodGroups and Workloads (scheduling.k8s.io/v1beta1), which are served while GenericWorkload is on.

The priority of a group comes from its class. Of its spec only the minimum count of a gang can be changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final

from kubecel.names import qualified_name_errors
from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import Cause, duplicate, forbidden, invalid_value, required
from podium_cluster.apiserver.kind import STATUS, built_in_kind
from podium_cluster.apiserver.kind_record import KindRecord, KindRules
from podium_cluster.apiserver.kinds.priority_classes import class_named, default_class
from podium_cluster.apiserver.table_cells import AGE, NAME, Cells, KindTable, TableColumn, age
from podium_cluster.apiserver.validation.wording import Causes, Obj, dns_label, dns_subdomain, each
from podium_cluster.apiserver.write_context import WriteContext

MOST_TEMPLATES: Final = 8
MOST_KEYS: Final = 1
HIGHEST_PRIORITY: Final = 1_000_000_000
_POLICIES: Final = ("basic", "gang")
_MODES: Final = ("single", "all")
_COLUMNS: Final = (
    NAME,
    TableColumn("Policy", "How the group is scheduled."),
    TableColumn("Workload", "The Workload it is made of."),
    TableColumn("Status", "Whether it is scheduled."),
    AGE,
)
V1ALPHA2: Final = "scheduling.k8s.io/v1alpha2"
"""The version of Kubernetes 1.36, in which a data file may still hold them."""
POD_GROUP: Final = built_in_kind("scheduling.k8s.io/v1beta1", "PodGroup podgroups", STATUS)
WORKLOAD: Final = built_in_kind("scheduling.k8s.io/v1beta1", "Workload workloads")


def from_v1alpha2(obj: JsonObject) -> JsonObject:
    """A PodGroup or a Workload as v1beta1 writes it, of one that was stored as Kubernetes 1.36 had it."""
    spec = {**(obj.get("spec") or {})}
    named = (spec.pop("podGroupTemplateRef", None) or {}).get("workload")
    if named:
        reference = {
            "workloadName": named.get("workloadName", ""),
            "templateName": named.get("podGroupTemplateName", ""),
        }
        spec["workloadRef"] = reference
    templates = [_with_mode(each) for each in spec.get("podGroupTemplates") or ()]
    new = {"kind": obj["kind"], "apiVersion": POD_GROUP.api_version, **obj, "spec": _with_mode(spec)}
    new["apiVersion"] = POD_GROUP.api_version
    if templates:
        new["spec"]["podGroupTemplates"] = templates
    for condition in (new.get("status") or {}).get("conditions") or ():
        if condition["type"] == "PodGroupScheduled":
            condition["type"] = "PodGroupInitiallyScheduled"
    return new


def _with_mode(spec: JsonObject) -> JsonObject:
    mode = spec.get("disruptionMode")
    return (
        {**spec, "disruptionMode": {"all" if mode == "PodGroup" else "single": {}}} if isinstance(mode, str) else spec
    )


def _admit(group: JsonObject, context: WriteContext) -> None:
    spec = group.setdefault("spec", {})
    _set_priority(group, spec, context)
    if spec.get("disruptionMode") is None:
        spec["disruptionMode"] = {"single": {}}


def _set_priority(group: JsonObject, spec: JsonObject, context: WriteContext) -> None:
    name = spec.get("priorityClassName")
    found = class_named(name, context) if name else default_class(context)
    if found is None:
        raise _refused(group, f"no PriorityClass with name {name} was found")
    given = spec.get("priority")
    if given is not None and given != found.value:
        raise _refused(
            group,
            f"priority set in the pod group ({given}) must match the priority computed ({found.value}) based on the "
            "priority class set in the spec",
        )
    spec["priority"] = found.value
    if found.name:
        spec["priorityClassName"] = found.name


def _refused(group: JsonObject, why: str) -> Exception:
    return forbidden(POD_GROUP, group["metadata"].get("name", ""), why)


def _check_group(obj: Obj) -> Causes:
    spec = obj.get("spec") or {}
    workload = spec.get("workloadRef")
    if workload is not None:
        yield from _named("spec.workloadRef.workloadName", workload.get("workloadName", ""), dns_subdomain)
        yield from _named("spec.workloadRef.templateName", workload.get("templateName", ""), dns_label)
    yield from _group("spec", spec)


def _named(path: str, name: str, check: Callable[[str, str], Causes]) -> Causes:
    if name:
        yield from check(path, name)
    else:
        yield required(path)


def _check_group_update(new: Obj, old: Obj) -> Causes:
    yield from _check_group(new)
    after, before = ({**(each.get("spec") or {})} for each in (new, old))
    for spec in (after, before):
        gang = (spec.get("schedulingPolicy") or {}).get("gang")
        if gang is not None:
            spec["schedulingPolicy"] = {**spec["schedulingPolicy"], "gang": {**gang, "minCount": None}}
    yield from _unchanged({"spec": after}, {"spec": before})


def _check_workload(obj: Obj) -> Causes:
    templates: list[Any] = (obj.get("spec") or {}).get("podGroupTemplates") or []
    path = "spec.podGroupTemplates"
    if not templates and not (obj.get("spec") or {}).get("compositePodGroupTemplates"):
        members = "must specify one of: `podGroupTemplates`, `compositePodGroupTemplates`"
        yield invalid_value("spec", "", members)
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


def _check_workload_update(new: Obj, old: Obj) -> Causes:
    yield from _check_workload(new)
    yield from _unchanged(new, old)


def _unchanged(new: Obj, old: Obj) -> Causes:
    after, before = new.get("spec") or {}, old.get("spec") or {}
    for field in sorted({*after, *before}):
        if after.get(field) != before.get(field):
            yield invalid_value(f"spec.{field}", None, "field is immutable")


def _group(path: str, spec: Obj) -> Causes:
    policy = spec.get("schedulingPolicy") or {}
    yield from _one_of(f"{path}.schedulingPolicy", policy, _POLICIES)
    if policy.get("gang") is not None:
        least = policy["gang"].get("minCount", 0)
        where = f"{path}.schedulingPolicy.gang.minCount"
        if not least:
            yield required(where)
        elif least < 1:
            yield invalid_value(where, least, "must be greater than or equal to 1")
    yield from _constraints(f"{path}.schedulingConstraints.topology", spec)
    mode = spec.get("disruptionMode")
    if mode is not None:
        yield from _one_of(f"{path}.disruptionMode", mode, _MODES)
    priority = spec.get("priority")
    if priority is not None and priority > HIGHEST_PRIORITY:
        yield invalid_value(f"{path}.priority", priority, f"must be less than or equal to {HIGHEST_PRIORITY}")


def _one_of(path: str, union: Obj, members: Sequence[str]) -> Causes:
    given = [name for name in members if union.get(name) is not None]
    options = ", ".join(f"`{name}`" for name in members)
    if not given:
        yield invalid_value(path, "", f"must specify one of: {options}")
    elif len(given) > 1:
        yield invalid_value(path, f"{{{', '.join(given)}}}", f"must specify exactly one of: {options}")


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


def _cells(obj: JsonObject, now: datetime) -> Cells:
    spec, conditions = obj.get("spec") or {}, (obj.get("status") or {}).get("conditions") or ()
    by_type = {each["type"]: each for each in conditions}
    status = "Pending"
    if "PodGroupInitiallyScheduled" in by_type:
        status = "Scheduled" if by_type["PodGroupInitiallyScheduled"]["status"] == "True" else "Unschedulable"
    if "DisruptionTarget" in by_type:
        status = by_type["DisruptionTarget"].get("reason", "")
    policy = "Gang" if (spec.get("schedulingPolicy") or {}).get("gang") is not None else "Basic"
    workload = (spec.get("workloadRef") or {}).get("workloadName") or "<none>"
    return [obj["metadata"]["name"], policy, workload, status, age(obj, now)]


POD_GROUP_RECORD: Final = KindRecord(
    POD_GROUP,
    KindRules(admit=_admit, validate=_check_group, validate_update=_check_group_update, empty_status={}),
    KindTable(_COLUMNS, _cells),
)
WORKLOAD_RECORD: Final = KindRecord(
    WORKLOAD, KindRules(validate=_check_workload, validate_update=_check_workload_update)
)
