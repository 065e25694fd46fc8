"""Which events may make room for a pod that InterPodAffinity refused.

Only required terms matter. Here terms are taken as written, without resolving namespace selectors, and several
anti-affinity terms must all match a pod for it to matter: coarser than the filter, but kube-scheduler's rule. Another
pod matters only if it has, or is promised, a node. A pod whose terms cannot be parsed is woken by anything.
"""

from __future__ import annotations

from podium.cluster import Cluster, PodFacts, Term, TermKind
from podium.kube import Node, Pod
from podium.plugins.inter_pod_affinity.incoming import NO_LABELS


class Hints:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def after_pod_change(self, pod: Pod, before: Pod | None, after: Pod | None) -> bool:
        """Label changes of the pod itself; other pods that begin to attract, or stop repelling, it."""
        if before is not None and after is not None and after.uid == pod.uid:
            return True
        if any(other is not None and not _has_node(other) for other in (before, after)):
            return False
        facts = self._cluster.facts.of(pod)
        if facts.terms_error is not None:
            return True
        anti_affinity = _of_kind(facts, TermKind.REQUIRED_ANTI_AFFINITY)
        if after is None:
            assert before is not None, "an event speaks of an object"
            theirs = self._cluster.facts.of(before)
            return (
                _matches_all(anti_affinity, before)
                or theirs.terms_error is not None
                or _matches_all(_of_kind(theirs, TermKind.REQUIRED_ANTI_AFFINITY), pod)
            )
        affinity = _of_kind(facts, TermKind.REQUIRED_AFFINITY)
        if before is None:
            return _matches_all(affinity, after)
        attracts_now = not _matches_all(affinity, before) and _matches_all(affinity, after)
        repels_no_more = _matches_all(anti_affinity, before) and not _matches_all(anti_affinity, after)
        return attracts_now or repels_no_more

    def after_node_change(self, pod: Pod, before: Node | None, after: Node) -> bool:
        """Nodes that come, or that join or leave a domain in a way that can help."""
        facts = self._cluster.facts.of(pod)
        if facts.terms_error is not None:
            return True
        for term in _of_kind(facts, TermKind.REQUIRED_AFFINITY):
            value = after.labels.get(term.topology_key)
            if value is not None and (before is None or before.labels.get(term.topology_key) != value):
                return True
        for term in _of_kind(facts, TermKind.REQUIRED_ANTI_AFFINITY):
            if before is None:
                return True
            value = before.labels.get(term.topology_key)
            if value is not None and after.labels.get(term.topology_key) != value:
                return True
        return False


def _of_kind(facts: PodFacts, kind: TermKind) -> list[Term]:
    return [term for term in facts.terms if term.kind == kind]


def _has_node(pod: Pod) -> bool:
    return bool(pod.node_name or pod.status.nominated_node_name)


def _matches_all(terms: list[Term], pod: Pod) -> bool:
    return bool(terms) and all(term.matches(pod.namespace, NO_LABELS, pod.labels) for term in terms)
