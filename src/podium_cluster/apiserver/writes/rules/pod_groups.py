"""Admits PodGroups: their priority comes from their class, and the template they name must exist."""

from typing import Final

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import forbidden
from podium_cluster.apiserver.kinds import built_in
from podium_cluster.apiserver.writes.context import WriteContext
from podium_cluster.apiserver.writes.rules.pod_priority import class_named, default_class
from podium_cluster.apiserver.writes.rules.rule import KindRules

POD_GROUP: Final = built_in("scheduling.k8s.io/v1alpha2", "PodGroup")
WORKLOAD: Final = built_in("scheduling.k8s.io/v1alpha2", "Workload")


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


POD_GROUP_RULES: Final = KindRules(admit=_admit, empty_status={})
