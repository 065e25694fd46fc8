"""Finds the nodes a pod requires: by its nodeSelector, and by the required part of its node affinity.

Both must match. The terms of the affinity are alternatives; a term that says nothing or is malformed matches no node,
and an affinity without terms matches none either.
"""

from __future__ import annotations

from podium.cluster import Mask, Nodes
from podium.framework.cycle import Cycle
from podium.kube import Node, NodeSelector, Pod
from podium.kube.selector import NodeTerms, Selector, compile_node_selector, selector_from_labels


class RequiredNodes:
    """A pod's requirements, ready to match."""

    __slots__ = ("selector", "terms")

    @staticmethod
    def of(cycle: Cycle) -> RequiredNodes:
        """Those of the cycle's pod, made once per specification."""
        notes = cycle.facts.notes
        known: RequiredNodes | None = notes.get(RequiredNodes)
        if known is None:
            known = notes[RequiredNodes] = RequiredNodes(cycle.pod)
        return known

    def __init__(self, pod: Pod) -> None:
        required = required_selector(pod)
        self.selector: Selector = selector_from_labels(pod.spec.node_selector)
        self.terms: NodeTerms | None = None if required is None else compile_node_selector(required)

    def mask(self, nodes: Nodes) -> Mask:
        """Which of the nodes match."""
        if self.terms is None:
            return nodes.match(self.selector.requirements)
        matching = nodes.match_node_selector(self.terms)
        return matching & nodes.match(self.selector.requirements) if self.selector.requirements else matching

    def matches(self, node: Node) -> bool:
        if not self.selector.matches(node.labels):
            return False
        return self.terms is None or self.terms.matches(node.labels, node.name)


def required_selector(pod: Pod) -> NodeSelector | None:
    """The required part of the pod's node affinity."""
    affinity = pod.spec.affinity
    return None if affinity is None or affinity.node_affinity is None else affinity.node_affinity.required
