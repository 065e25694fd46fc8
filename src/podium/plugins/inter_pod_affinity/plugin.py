"""Decides by required terms which nodes are allowed, by preferred ones which are best.

Both directions count: what the incoming pod asks of placed pods, and what placed pods ask of it. `required` has the
rules for filtering, `preferred` those for scoring. Pods that hold no terms and of which no placed pod's term speaks
are skipped at the cost of a few lookups.

Also types the plugin's arguments: what a placed pod's required affinity scores, and whose preferences count.

Also decides which events may make room for a pod that InterPodAffinity refused.

Only required terms matter. Here terms are taken as written, without resolving namespace selectors. A pod matters if any
anti-affinity term matches it; before 1.37, several terms must all match it. Another pod matters only if it has, or is
promised, a node. Terms that cannot be parsed may be about anything.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import msgspec

from podium.cluster import Cluster, Nodes, PlacedPod, PodFacts, Term, TermGroup, TermKind
from podium.cluster.selector_index import Pair, required_pairs
from podium.config.field import FieldError, FieldPath
from podium.config.types import Int32
from podium.framework import SKIP, Action, Cycle, DependsOn, Handle, Interest, Plugin, Resource, Scores, Status, Verdict
from podium.kube import Node, Pod
from podium.plugins.inter_pod_affinity.incoming import NO_LABELS, NONE, Incoming, chooses_namespaces, incoming_terms
from podium.plugins.inter_pod_affinity.preferred import DomainPoints, domain_points, raw_scores, spread_out
from podium.plugins.inter_pod_affinity.required import RequiredNotes, adjust, required_notes, verdict

NAME = "InterPodAffinity"
POINTS = f"{NAME}/points"
ANY_VERSION = -1


class InterPodAffinityArgs(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    hard_pod_affinity_weight: Int32 = 1
    """Added for each required affinity term of a placed pod that the incoming pod matches."""
    ignore_preferred_terms_of_existing_pods: bool = False
    """Do not score at all unless the incoming pod has preferred terms of its own."""

    def validate(self, path: FieldPath) -> Iterable[FieldError]:
        weight = self.hard_pod_affinity_weight
        if not 0 <= weight <= 100:
            yield FieldError.invalid(path.child("hardPodAffinityWeight"), weight, "not in valid range [0, 100]")


class InterPodAffinity(Plugin):
    name = NAME
    trusted = True
    Args = InterPodAffinityArgs
    depends_on = DependsOn(claims=False)

    def __init__(self, args: InterPodAffinityArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._cluster = handle.cluster

    def interests(self) -> Iterable[Interest]:
        hints = AffinityHints(self._cluster, any_term=self.handle.rules.any_own_anti_affinity_term_wakes)
        pod_actions = Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE
        node_actions = Action.ADD | Action.UPDATE_NODE_LABEL
        return [
            Interest(Resource.POD, pod_actions, hints.after_pod_change, by_signature=True, concerns=hints),
            Interest(Resource.NODE, node_actions, hints.after_node_change, by_signature=True),
        ]

    def answer_key(self, pod: Pod) -> Hashable:
        """Changes of the pods that the pod's terms speak of, of the placed terms that speak of it, of node labels."""
        cluster = self._cluster
        terms = tuple([group.version for group in self._speaking_of(pod)])
        pods: tuple[int, ...] = ()
        if _holds_terms(pod):
            incoming = self._incoming(cluster.facts.of(pod))
            pods = tuple([cluster.counts.column(query).version for query in incoming.queries()])
        return (cluster.labels.version, terms, pods) if terms or pods else (0,)

    # Filtering

    def pre_filter(self, cycle: Cycle) -> Status | None:
        if cycle.facts.terms_error is not None:
            return Status.unresolvable(f"parsing pod: {cycle.facts.terms_error}")
        incoming, groups = self._incoming(cycle.facts), self._speaking_of(cycle.pod)
        if incoming is NONE and not groups:
            return SKIP
        notes = required_notes(cycle, incoming, groups)
        if notes.needless:
            return SKIP
        cycle.data[NAME] = notes
        return None

    def add_pod(self, cycle: Cycle, placed: PlacedPod) -> None:
        adjust(cycle.data[NAME], cycle.cluster, placed, 1)

    def remove_pod(self, cycle: Cycle, placed: PlacedPod) -> None:
        adjust(cycle.data[NAME], cycle.cluster, placed, -1)

    def filter(self, cycle: Cycle, nodes: Nodes) -> Verdict | None:
        notes: RequiredNotes = cycle.data[NAME]
        return verdict(notes, nodes)

    # Scoring

    def pre_score(self, cycle: Cycle, nodes: Nodes) -> Status | None:
        args: InterPodAffinityArgs = self.args
        if args.ignore_preferred_terms_of_existing_pods and not _prefers(cycle.pod):
            return SKIP
        if cycle.facts.terms_error is not None:
            return Status.error(f"failed to parse pod: {cycle.facts.terms_error}")
        incoming, groups = self._incoming(cycle.facts), self._speaking_of(cycle.pod)
        points = domain_points(cycle.cluster, incoming, groups, args.hard_pod_affinity_weight)
        if not points:
            return SKIP
        cycle.data[POINTS] = points
        return None

    def score(self, cycle: Cycle, nodes: Nodes) -> Scores:
        points: DomainPoints = cycle.data[POINTS]
        return raw_scores(points, nodes)

    def normalize(self, cycle: Cycle, nodes: Nodes, scores: Scores) -> Scores:
        return spread_out(scores)

    # The two directions

    def _speaking_of(self, pod: Pod) -> list[TermGroup]:
        """The placed terms that match the pod."""
        cluster = self._cluster
        return cluster.terms.matching(pod.namespace, cluster.objects.namespace_labels(pod.namespace), pod.labels)

    def _incoming(self, facts: PodFacts) -> Incoming:
        """The pod's own terms as questions, made again when namespaces changed that they may be about."""
        if not facts.terms:
            return NONE
        namespaces = self._cluster.objects.namespaces
        known: tuple[int, Incoming] | None = facts.notes.get(self)
        if known is not None and known[0] in (ANY_VERSION, namespaces.version):
            return known[1]
        incoming = incoming_terms(facts.terms, namespaces, unlabelled=self.handle.rules.empty_labels_reach_namespaces)
        facts.notes[self] = namespaces.version if chooses_namespaces(facts.terms) else ANY_VERSION, incoming
        return incoming


def _holds_terms(pod: Pod) -> bool:
    affinity = pod.spec.affinity
    return affinity is not None and not (affinity.pod_affinity is None and affinity.pod_anti_affinity is None)


def _prefers(pod: Pod) -> bool:
    """Whether the pod has preferred terms of its own."""
    affinity = pod.spec.affinity
    if affinity is None:
        return False
    return any(rules is not None and rules.preferred for rules in (affinity.pod_affinity, affinity.pod_anti_affinity))


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
                pairs = required_pairs(term.selector)
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
