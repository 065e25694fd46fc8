"""Binds a pod: the one write by which a scheduler says where it runs.

It is not an update, so it needs no resourceVersion; instead it succeeds once. A pod that has a node, is being deleted
or is gated is refused with a conflict, and so is one whose uid or resourceVersion is not the Binding's. The pod gets
the Binding's labels and annotations, and the zone and region of its node as labels.
"""

from __future__ import annotations

from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import Cause, StatusError, aggregated, bad_request, not_supported, required
from podium_cluster.apiserver.kinds import POD
from podium_cluster.apiserver.kinds.pods.admission import topology_labels
from podium_cluster.apiserver.write_context import WriteContext
from podium_cluster.apiserver.writes.conflict import check_binding
from podium_cluster.apiserver.writes.metadata import admit_namespace


def bind(context: WriteContext, namespace: str, name: str, body: JsonObject, *, dry_run: bool = False) -> None:
    """Bind the pod to the node that a Binding (or just its `target`) names."""
    admit_namespace(context.store, POD, namespace, name)
    metadata = body.get("metadata") or {}
    if metadata.get("name", name) != name:
        raise bad_request("name in URL does not match name in Binding object")
    target = body.get("target") or {}
    if causes := _target_causes(target):
        raise StatusError(500, "", aggregated(causes))
    stored = context.stored(POD, namespace, name)
    uid, version = metadata.get("uid", ""), metadata.get("resourceVersion", "")
    check_binding(stored, uid, version)
    pod = stored.decode()
    _check_unbound(name, pod)
    if dry_run:
        return
    pod["spec"]["nodeName"] = target["name"]
    labels = metadata.get("labels") or {}
    if target.get("kind") == "Node":
        labels = {**labels, **topology_labels(context, target["name"])}
    for field, added in (("annotations", metadata.get("annotations")), ("labels", labels)):
        if added:
            pod["metadata"][field] = {**(pod["metadata"].get(field) or {}), **added}
    status = pod.setdefault("status", {})
    status.pop("nominatedNodeName", None)
    set_condition(status, {"type": "PodScheduled", "status": "True"}, context.now())
    context.store.put(POD, pod)


def set_condition(status: JsonObject, condition: JsonObject, now: str) -> None:
    """Add or replace the condition of that type; its transition time moves only when its status does."""
    conditions: list[JsonObject] = status.setdefault("conditions", [])
    for index, present in enumerate(conditions):
        if present.get("type") == condition["type"]:
            unmoved = present.get("status") == condition["status"] and present.get("lastTransitionTime")
            conditions[index] = _condition(condition, present["lastTransitionTime"] if unmoved else now)
            return
    conditions.append(_condition(condition, now))


def _condition(condition: JsonObject, transition: str) -> JsonObject:
    found = {"type": condition["type"], "status": condition["status"], "lastProbeTime": None}
    found["lastTransitionTime"] = transition
    found.update((key, condition[key]) for key in ("reason", "message") if condition.get(key))
    return found


def _target_causes(target: JsonObject) -> list[Cause]:
    causes = []
    if target.get("kind") not in (None, "", "Node"):
        causes.append(not_supported("target.kind", target["kind"], ("Node", "<empty>")))
    if not target.get("name"):
        causes.append(required("target.name"))
    return causes


def _check_unbound(name: str, pod: JsonObject) -> None:
    spec = pod.get("spec") or {}
    if "deletionTimestamp" in pod["metadata"]:
        raise _refused(name, f"pod {name} is being deleted, cannot be assigned to a host")
    if node := spec.get("nodeName"):
        raise _refused(name, f'pod {name} is already assigned to node "{node}"')
    if spec.get("schedulingGates"):
        raise _refused(name, f"pod {name} has non-empty .spec.schedulingGates")


def _refused(name: str, why: str) -> StatusError:
    message = f'Operation cannot be fulfilled on pods/binding "{name}": {why}'
    return StatusError(409, "Conflict", message, {"name": name, "kind": "pods/binding"})
