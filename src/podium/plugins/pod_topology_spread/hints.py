"""Decides which events may make room for a pod that PodTopologySpread refused.

Pods matter if they are in the pod's namespace and have, or are promised, a node (or are the pod itself); nodes matter
if they carry all topology keys of the pod's DoNotSchedule constraints. A pod whose constraints cannot be read is woken
by anything that matters.
"""

from __future__ import annotations

from podium.cluster import Cluster
from podium.kube import Node, Pod
from podium.plugins.pod_topology_spread.args import DO_NOT_SCHEDULE
from podium.plugins.pod_topology_spread.rules import RuleBook, Rules


class SpreadHints:
    """Judges events for pods with DoNotSchedule constraints."""

    def __init__(self, cluster: Cluster, book: RuleBook) -> None:
        self._cluster = cluster
        self._book = book

    def after_pod_change(self, pod: Pod, before: Pod | None, after: Pod | None) -> bool:
        if any(other is not None and not _involved(other, pod) for other in (before, after)):
            return False
        rules = self._rules(pod)
        if rules.error:
            return True
        if before is None or after is None:
            came_or_went = before or after
            assert came_or_went is not None, "an event speaks of an object"
            return any(constraint.selector.matches(came_or_went.labels) for constraint in rules.constraints)
        if (
            after.uid == pod.uid
            and after.spec.tolerations != before.spec.tolerations
            and any(constraint.honors_taints for constraint in rules.constraints)
        ):
            return True
        return any(
            constraint.selector.matches(before.labels) != constraint.selector.matches(after.labels)
            for constraint in rules.constraints
        )

    def after_node_change(self, pod: Pod, before: Node | None, after: Node | None) -> bool:
        rules = self._rules(pod)
        if rules.error:
            return True
        if before is None or after is None:
            return any(node is not None and _has_keys(node, rules) for node in (before, after))
        if _has_keys(before, rules) != _has_keys(after, rules):
            return True
        return _has_keys(after, rules) and (
            before.taints != after.taints or any(before.labels[key] != after.labels[key] for key in rules.keys)
        )

    def _rules(self, pod: Pod) -> Rules:
        return self._book.rules(pod, self._cluster.facts.of(pod), DO_NOT_SCHEDULE)


def _involved(other: Pod, pod: Pod) -> bool:
    if other.uid == pod.uid:
        return True
    has_node = bool(other.node_name or other.status.nominated_node_name)
    return has_node and other.namespace == pod.namespace


def _has_keys(node: Node, rules: Rules) -> bool:
    return all(key in node.labels for key in rules.keys)
