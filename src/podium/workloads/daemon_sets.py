"""Says which nodes a DaemonSet's pod runs on, and makes the pods of a node that is new.

A DaemonSet's pod names its node in its affinity and tolerates the taints of a node in trouble. What it would be on
another node follows from any pod of the set, so that a dump of nodes and pods is enough.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from podium.kube import Node, ObjectMeta, Pod, PodSpec, Toleration
from podium.kube.affinity import (
    Affinity,
    NodeAffinitySpec,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)
from podium.kube.toleration import untolerated
from podium.placement.required_nodes import RequiredNodes

KIND: Final = "DaemonSet"
NAME_FIELD: Final = "metadata.name"
TOLERATED: Final = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)
"""The node controller's taints that every pod of a DaemonSet tolerates, by name and effect."""


def is_daemon_pod(pod: Pod) -> bool:
    owner = pod.metadata.controller
    return owner is not None and owner.kind == KIND


def tolerant(spec: PodSpec) -> PodSpec:
    """The specification with the tolerations that the controller adds."""
    wanted = [*TOLERATED, *([("network-unavailable", "NoSchedule")] if spec.host_network else [])]
    added = [Toleration(key=f"node.kubernetes.io/{name}", operator="Exists", effect=effect) for name, effect in wanted]
    missing = [each for each in added if each not in spec.tolerations]
    return replace(spec, tolerations=(*spec.tolerations, *missing))


def unpinned(spec: PodSpec) -> PodSpec:
    """The specification without the node that it names."""
    affinity = spec.affinity
    if affinity is not None and affinity.node_affinity is not None and affinity.node_affinity.required is not None:
        terms = [replace(term, match_fields=()) for term in affinity.node_affinity.required.node_selector_terms]
        left = tuple(term for term in terms if term.match_expressions)
        required = NodeSelector(node_selector_terms=left) if left else None
        node_affinity = replace(affinity.node_affinity, required_during_scheduling_ignored_during_execution=required)
        affinity = replace(affinity, node_affinity=node_affinity)
    return replace(spec, node_name="", affinity=affinity)


def pinned(spec: PodSpec, node: str) -> PodSpec:
    """The specification of the pod that is for one node."""
    field = NodeSelectorRequirement(key=NAME_FIELD, operator="In", values=(node,))
    affinity = spec.affinity or Affinity()
    node_affinity = affinity.node_affinity or NodeAffinitySpec()
    known = () if node_affinity.required is None else node_affinity.required.node_selector_terms
    terms = tuple(replace(term, match_fields=(field,)) for term in known) or (NodeSelectorTerm(match_fields=(field,)),)
    node_affinity = replace(
        node_affinity, required_during_scheduling_ignored_during_execution=NodeSelector(node_selector_terms=terms)
    )
    return replace(spec, affinity=replace(affinity, node_affinity=node_affinity))


def runs_on(pod: Pod, node: Node) -> bool:
    """Whether the DaemonSet of this (unpinned) pod has one on the node."""
    return RequiredNodes(pod).matches(node) and untolerated(node.taints, pod.spec.tolerations) is None


def one_of_each(pods: Iterable[Pod]) -> list[Pod]:
    """A pod of every DaemonSet, for no node in particular."""
    found: dict[tuple[str, str], Pod] = {}
    for pod in pods:
        owner = pod.metadata.controller
        if owner is not None and owner.kind == KIND and not pod.terminating:
            found.setdefault((pod.namespace, owner.name), pod)
    return [replace(pod, spec=unpinned(pod.spec)) for pod in found.values()]


def pods_for(node: Node, of_each: Iterable[Pod]) -> list[Pod]:
    """The pods that DaemonSets would run on a node, already on it."""
    found = []
    for pod in of_each:
        owner = pod.metadata.controller
        if owner is None or not runs_on(pod, node):
            continue
        name = f"{owner.name}-{node.name}"
        metadata = ObjectMeta(
            name=name,
            namespace=pod.namespace,
            uid=f"{pod.namespace}/{name}",
            labels=pod.labels,
            annotations=pod.annotations,
            owner_references=pod.metadata.owner_references,
        )
        found.append(replace(pod, metadata=metadata, spec=replace(pinned(pod.spec, node.name), node_name=node.name)))
    return found
