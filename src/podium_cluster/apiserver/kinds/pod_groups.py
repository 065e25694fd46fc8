"""PodGroups and Workloads (scheduling.k8s.io/v1alpha2), which are served while GenericWorkload is on.

The priority of a group comes from its class, and the template it names must exist.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from kubecel.names import qualified_name_errors
from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import Cause, duplicate, forbidden, invalid_value, not_supported, required
from podium_cluster.apiserver.kind import STATUS, built_in_kind
from podium_cluster.apiserver.kind_record import KindRecord, KindRules
from podium_cluster.apiserver.kinds.priority_classes import class_named, default_class
from podium_cluster.apiserver.table_cells import AGE, NAME, Cells, KindTable, TableColumn, age
from podium_cluster.apiserver.validation.wording import Causes, Obj, each
from podium_cluster.apiserver.write_context import WriteContext

MOST_TEMPLATES: Final = 8
MOST_KEYS: Final = 1
HIGHEST_PRIORITY: Final = 1_000_000_000
_POLICIES: Final = ("basic", "gang")
_MODES: Final = ("Pod", "PodGroup")
_COLUMNS: Final = (
    NAME,
    TableColumn("Policy", "How the group is scheduled."),
    TableColumn("Workload", "The Workload it is made of."),
    TableColumn("Status", "Whether it is scheduled."),
    AGE,
)
POD_GROUP: Final = built_in_kind("scheduling.k8s.io/v1alpha2", "PodGroup podgroups", STATUS)
WORKLOAD: Final = built_in_kind("scheduling.k8s.io/v1alpha2", "Workload workloads")


def _admit(group: JsonObject, context: WriteContext) -> None:
    spec = group.setdefault("spec", {})
    _check_template(group, spec, context)
    _set_priority(group, spec, context)
    spec.setdefault("disruptionMode", "Pod")


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


def _check_template(group: JsonObject, spec: JsonObject, context: WriteContext) -> None:
    named = (spec.get("podGroupTemplateRef") or {}).get("workload")
    if not named:
        return
    name, template = named.get("workloadName", ""), named.get("podGroupTemplateName", "")
    namespace = group["metadata"].get("namespace", "default")
    stored = context.store.get(WORKLOAD, namespace, name)
    if stored is None:
        raise _refused(group, f'PodGroup rejected: Workload "{name}" not found')
    templates = stored.decode().get("spec", {}).get("podGroupTemplates", [])
    if all(each.get("name") != template for each in templates):
        raise _refused(group, f'PodGroup rejected: PodGroupTemplate "{template}" not found in Workload "{name}"')


def _refused(group: JsonObject, why: str) -> Exception:
    return forbidden(POD_GROUP, group["metadata"].get("name", ""), why)


def _check_group(obj: Obj) -> Causes:
    yield from _group("spec", obj.get("spec") or {})


def _check_group_update(new: Obj, old: Obj) -> Causes:
    yield from _check_group(new)
    yield from _unchanged(new, old)


def _check_workload(obj: Obj) -> Causes:
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


def _cells(obj: JsonObject, now: datetime) -> Cells:
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


POD_GROUP_RECORD: Final = KindRecord(
    POD_GROUP,
    KindRules(admit=_admit, validate=_check_group, validate_update=_check_group_update, empty_status={}),
    KindTable(_COLUMNS, _cells),
)
WORKLOAD_RECORD: Final = KindRecord(
    WORKLOAD, KindRules(validate=_check_workload, validate_update=_check_workload_update)
)
