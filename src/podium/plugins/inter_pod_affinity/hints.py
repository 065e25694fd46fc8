"""Decides which events may make room for a pod that InterPodAffinity refused.

Only required terms matter. Here terms are taken as written, without resolving namespace selectors. A pod matters if any
anti-affinity term matches it; before 1.37, several terms must all match it. Another pod matters only if it has, or is
promised, a node. Terms that cannot be parsed may be about anything.
"""

from __future__ import annotations

from podium.cluster import Cluster, Term, TermKind
from podium.cluster.selector_index import Pair, anchors
from podium.kube import Node, Pod
from podium.plugins.inter_pod_affinity.incoming import NO_LABELS


class AffinityHints:
    """Judges events for pods with required terms."""

    def __init__(self, cluster: Cluster, *, any_term: bool = True) -> None:
        self._cluster = cluster
        self._any_term = any_term
        self._repelled = _matches_any if any_term else _matches_all

    def after_pod_change(self, pod: Pod, before: Pod | None, after: Pod | None) -> bool:
        """Label changes of the pod itself; other pods that begin to attract, or stop repelling, it."""
        if before is not None and after is not None and after.uid == pod.uid:
            return True
        if any(other is not None and not _has_node(other) for other in (before, after)):
            return False
        affinity = self._terms(pod, TermKind.REQUIRED_AFFINITY)
        anti_affinity = self._terms(pod, TermKind.REQUIRED_ANTI_AFFINITY)
        if affinity is None or anti_affinity is None:
            return True
        if after is None:
            assert before is not None, "an event speaks of an object"
            theirs = self._terms(before, TermKind.REQUIRED_ANTI_AFFINITY)
            return self._repelled(anti_affinity, before) or theirs is None or self._repelled(theirs, pod)
        if before is None:
            return _matches_all(affinity, after)
        attracts_now = not _matches_all(affinity, before) and _matches_all(affinity, after)
        repels_no_more = self._repelled(anti_affinity, before) and not self._repelled(anti_affinity, after)
        return attracts_now or repels_no_more

    def after_node_change(self, pod: Pod, before: Node | None, after: Node) -> bool:
        """Nodes that come, or that join or leave a domain in a way that can help."""
        affinity = self._terms(pod, TermKind.REQUIRED_AFFINITY)
        anti_affinity = self._terms(pod, TermKind.REQUIRED_ANTI_AFFINITY)
        if affinity is None or anti_affinity is None:
            return True
        if before is None:
            return bool(anti_affinity) or any(term.topology_key in after.labels for term in affinity)
        joins = any(_moves(term, after, before) for term in affinity)
        leaves = any(_moves(term, before, after) for term in anti_affinity)
        return joins or leaves

    # Which pods a change of a pod may matter to: labels that they wait to see, or no longer to see, on another pod.

    def of_pod(self, pod: Pod) -> set[Pair] | None:
        awaited: set[Pair] = set()
        for kind in (TermKind.REQUIRED_AFFINITY, TermKind.REQUIRED_ANTI_AFFINITY):
            terms = self._terms(pod, kind)
            if terms is None:
                return None
            every = self._any_term and kind == TermKind.REQUIRED_ANTI_AFFINITY
            for term in terms if every else terms[:1]:
                pairs = anchors(term.selector)
                if pairs is None:
                    return None
                awaited.update(pairs)
        return awaited

    def of_event(self, before: Pod | None, after: Pod | None) -> set[Pair] | None:
        if after is None and before is not None and self._terms(before, TermKind.REQUIRED_ANTI_AFFINITY) != []:
            return None  # one that repelled others has gone: they may be any
        return {pair for pod in (before, after) if pod is not None for pair in pod.labels.items()}

    def _terms(self, pod: Pod, kind: TermKind) -> list[Term] | None:
        """The pod's terms of a kind; None when they cannot be parsed."""
        facts = self._cluster.facts.of(pod)
        return None if kind in facts.terms_errors else [term for term in facts.terms if term.kind == kind]


def _moves(term: Term, there: Node, elsewhere: Node) -> bool:
    """Whether a node has the term's key in one version and another value, or none, in the other version."""
    value = there.labels.get(term.topology_key)
    return value is not None and elsewhere.labels.get(term.topology_key) != value


def _has_node(pod: Pod) -> bool:
    return bool(pod.node_name or pod.status.nominated_node_name)


def _matches_any(terms: list[Term], pod: Pod) -> bool:
    return any(term.matches(pod.namespace, NO_LABELS, pod.labels) for term in terms)


def _matches_all(terms: list[Term], pod: Pod) -> bool:
    return bool(terms) and all(term.matches(pod.namespace, NO_LABELS, pod.labels) for term in terms)
