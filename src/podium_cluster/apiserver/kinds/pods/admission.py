"""Admits pods: priority from a PriorityClass, overhead and node selector from a RuntimeClass, labels from the node.

A pod gets its priority from its class and from nowhere else. It may repeat the number and the preemption policy of its
class but not say others. A pod that is created on a node, or bound to one, gets the labels of the node's zone and
region.
"""

from __future__ import annotations

from typing import Final

from kubecel.quantity import QuantityError, parse
from podium.kube.json_object import JsonObject
from podium_cluster.apiserver.errors import StatusError, forbidden
from podium_cluster.apiserver.kinds.nodes import NODE
from podium_cluster.apiserver.kinds.pods.kind import POD
from podium_cluster.apiserver.kinds.priority_classes import RUNTIME_CLASS, class_named, default_class
from podium_cluster.apiserver.write_context import WriteContext

_COPIED: Final = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


def set_priority(pod: JsonObject, context: WriteContext) -> None:
    """Set the priority and the preemption policy from the class that a pod names, or from the default class."""
    spec = pod.setdefault("spec", {})
    class_name = spec.get("priorityClassName")
    found = class_named(class_name, context) if class_name else default_class(context)
    if found is None:
        raise _refused(pod, f"no PriorityClass with name {class_name} was found")
    if found.name:
        spec["priorityClassName"] = found.name
    given = spec.get("priority")
    if given is not None and given != found.value:
        why = f"the integer value of priority ({given}) must not be provided in pod spec; "
        raise _refused(
            pod, f"{why}priority admission controller computed {found.value} from the given PriorityClass name"
        )
    spec["priority"] = found.value
    if found.policy:
        given = spec.get("preemptionPolicy")
        if given is not None and given != found.policy:
            why = f"the string value of PreemptionPolicy ({given}) must not be provided in pod spec; "
            raise _refused(
                pod, f"{why}priority admission controller computed {found.policy} from the given PriorityClass name"
            )
        spec["preemptionPolicy"] = found.policy


def set_runtime(pod: JsonObject, context: WriteContext) -> None:
    """Make the overhead, the node selector and the tolerations of a pod's RuntimeClass its own."""
    spec = pod.setdefault("spec", {})
    name = spec.get("runtimeClassName")
    if not name:
        if spec.get("overhead"):
            raise _refused(pod, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")
        return
    stored = context.store.get(RUNTIME_CLASS, "", name)
    if stored is None:
        raise _refused(pod, f'pod rejected: RuntimeClass "{name}" not found')
    runtime = stored.decode()
    fixed = (runtime.get("overhead") or {}).get("podFixed")
    if fixed:
        if spec.get("overhead") and not _same(spec["overhead"], fixed):
            raise _refused(pod, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead")
        spec["overhead"] = fixed
    elif spec.get("overhead"):
        raise _refused(pod, "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead")
    _restrict(pod, spec, runtime.get("scheduling") or {})


def _restrict(pod: JsonObject, spec: JsonObject, scheduling: JsonObject) -> None:
    selector = spec.get("nodeSelector") or {}
    for key, value in (scheduling.get("nodeSelector") or {}).items():
        if selector.get(key, value) != value:
            why = f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; pod.spec.nodeSelector[{key}] ="
            raise _refused(pod, f"{why} {selector[key]}")
        selector = {**selector, key: value}
    if selector:
        spec["nodeSelector"] = selector
    tolerations = spec.get("tolerations") or []
    more = [each for each in scheduling.get("tolerations") or () if each not in tolerations]
    if more:
        spec["tolerations"] = [*tolerations, *more]


def _same(left: JsonObject, right: JsonObject) -> bool:
    try:
        return {name: parse(amount) for name, amount in left.items()} == {
            name: parse(amount) for name, amount in right.items()
        }
    except QuantityError:
        return False


def label_with_topology(pod: JsonObject, context: WriteContext) -> None:
    """Label a pod that is created on a node with the node's zone and region."""
    node = (pod.get("spec") or {}).get("nodeName")
    labels = topology_labels(context, node) if node else {}
    if labels:
        metadata = pod["metadata"]
        metadata["labels"] = {**(metadata.get("labels") or {}), **labels}


def topology_labels(context: WriteContext, node: str) -> dict[str, str]:
    """The labels of zone and region that a node has; none where it does not exist."""
    found = context.store.get(NODE, "", node)
    return {} if found is None else {key: found.labels[key] for key in _COPIED if key in found.labels}


def _refused(pod: JsonObject, why: str) -> StatusError:
    return forbidden(POD, pod["metadata"].get("name", ""), why)
