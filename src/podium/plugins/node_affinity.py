"""Keeps a pod to the nodes it requires, and scores those it prefers (NodeAffinity).

Filter: the node must match the pod's nodeSelector and one of its required terms, and the affinity that the profile adds
to all pods (`addedAffinity`). A pod whose every term asks for nodes by name is searched for on those nodes only.

Score: raw = Σ weight of the preferred terms that match, the pod's and the added ones; 100·raw/max. Preferred terms
without weight or without conditions do not count, but a pod that has only such terms is scored (0) all the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec
import numpy as np

from podium.cluster import Mask, Nodes
from podium.config.field import FieldError, FieldPath, Step
from podium.framework import (
    SKIP,
    Action,
    Cycle,
    DependsOn,
    Handle,
    Interest,
    NodePart,
    Normalizer,
    Plugin,
    PluginError,
    Resource,
    Scores,
    Status,
    Verdict,
)
from podium.kube import Node, NodeAffinitySpec, NodeSelector, NodeSelectorTerm, Pod, PreferredSchedulingTerm
from podium.kube.selector import (
    IN,
    NODE_NAME_FIELD,
    NodeTerms,
    PreferredTerm,
    SelectorError,
    compile_node_selector,
    compile_preferred_terms,
    compile_strict_node_selector,
)
from podium.placement.required_nodes import RequiredNodes, required_selector

NAME = "NodeAffinity"
PRE_SCORE = f"PreScore{NAME}"
NOT_THE_PODS = Status.unresolvable("node(s) didn't match Pod's node affinity/selector")
NOT_THE_PROFILES = Status.unresolvable("node(s) didn't match scheduler-enforced node affinity")
CONFLICT = Status.unresolvable("pod affinity terms conflict")


class NodeAffinityArgs(msgspec.Struct, rename="camel", kw_only=True, frozen=True, forbid_unknown_fields=True):
    added_affinity: NodeAffinitySpec | None = None
    """Applies to every pod of the profile, beside its own."""

    def validate(self, path: FieldPath) -> Iterator[FieldError]:
        added = self.added_affinity
        if added is None:
            return
        at = path.child("addedAffinity")
        if added.required is not None:
            terms = at.child("requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms")
            for i, term in enumerate(added.required.node_selector_terms):
                yield from _term_errors(term, terms.index(i))
        for i, preferred in enumerate(added.preferred):
            if preferred.weight:
                terms = at.child("preferredDuringSchedulingIgnoredDuringExecution")
                yield from _term_errors(preferred.preference, terms.index(i))


class NodeAffinity(Plugin):
    name = NAME
    trusted = True
    Args = NodeAffinityArgs
    depends_on = DependsOn(node=NodePart.OBJECT, claims=False)
    normalizer = Normalizer.DEFAULT

    def __init__(self, args: NodeAffinityArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        added = args.added_affinity or NodeAffinitySpec()
        self._added: NodeTerms | None = None if added.required is None else compile_strict_node_selector(added.required)
        self._prefers = bool(added.preferred)
        self._added_preferred = compile_preferred_terms(added.preferred)

    def interests(self) -> Iterable[Interest]:
        return [
            Interest(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL, self._starts_to_match, by_signature=True)
        ]

    def _starts_to_match(self, pod: Pod, before: Node | None, after: Node) -> bool:
        if self._added is not None and not self._added.matches(after.labels, after.name):
            return False
        required = RequiredNodes(pod)
        if not required.matches(after):
            # A malformed term is an error to kube-scheduler where nothing else decides, and errors wake the pod.
            terms = required.terms
            return terms is not None and bool(terms.error) and required.selector.matches(after.labels)
        return before is None or not required.matches(before)

    # Filter

    def pre_filter(self, cycle: Cycle) -> Status | frozenset[str] | None:
        pod = cycle.pod
        required = required_selector(pod)
        if required is None and self._added is None and not pod.spec.node_selector:
            return SKIP
        if required is None:
            return None
        names = _named_nodes(required.node_selector_terms)
        return CONFLICT if names is not None and not names else names

    def filter(self, cycle: Cycle, nodes: Nodes) -> Verdict:
        refused: Mask = ~RequiredNodes.of(cycle).mask(nodes)
        if self._added is None:
            return Verdict.reject(refused, NOT_THE_PODS)
        not_added = ~nodes.match_node_selector(self._added)
        return Verdict.first_of((not_added, NOT_THE_PROFILES), (refused, NOT_THE_PODS))

    # Score

    def pre_score(self, cycle: Cycle, _nodes: Nodes) -> Status | None:
        own = _preferred(cycle.pod)
        if not own and not self._prefers:
            return SKIP
        try:
            cycle.data[PRE_SCORE] = compile_preferred_terms(own)
        except SelectorError as error:
            return Status.error(str(error))
        return None

    def score(self, cycle: Cycle, nodes: Nodes) -> Scores:
        own: tuple[PreferredTerm, ...] | None = cycle.data.get(PRE_SCORE)
        if own is None:
            try:
                own = compile_preferred_terms(_preferred(cycle.pod))
            except SelectorError as error:
                raise PluginError(str(error)) from error
        scores = np.zeros(len(nodes), dtype=np.int64)
        for preferred in (*self._added_preferred, *own):
            scores[nodes.match_node_term(preferred.term)] += preferred.weight
        return scores


def _preferred(pod: Pod) -> tuple[PreferredSchedulingTerm, ...]:
    affinity = pod.spec.affinity
    return () if affinity is None or affinity.node_affinity is None else affinity.node_affinity.preferred


def _named_nodes(terms: Iterable[NodeSelectorTerm]) -> frozenset[str] | None:
    """The nodes that the terms name between them; None when some term could match a node of any name."""
    names: set[str] = set()
    any_term = False
    for term in terms:
        by_name = [set(f.values) for f in term.match_fields if f.key == NODE_NAME_FIELD and f.operator == IN]
        if not by_name:
            return None
        names |= set.intersection(*by_name)
        any_term = True
    return frozenset(names) if any_term else None


def _term_errors(term: NodeSelectorTerm, path: FieldPath) -> Iterator[FieldError]:
    """What is malformed in a term, as errors of the fields in question."""
    compiled = compile_node_selector(NodeSelector(node_selector_terms=(term,)))
    for error in (error for each in compiled.terms for error in each.errors):
        where, _, body = error.removeprefix("nodeSelectorTerms[0]").partition(": ")
        exact = FieldPath((*path.steps, *_steps(where)))
        # A path that names a label key in brackets has no steps of its own; it is kept as one.
        yield FieldError(exact if str(exact) == f"{path}{where}" else path.child(where.removeprefix(".")), body)


def _steps(where: str) -> Iterator[Step]:
    for name, position in re.findall(r"\.(\w+)|\[(\d+)\]", where):
        yield name or int(position)
