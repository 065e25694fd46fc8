"""Turns the incoming pod's own terms into questions about the pods that are already placed.

A term of the incoming pod reaches the namespaces that it names and those that its namespace selector chooses; an empty
selector chooses all. Before 1.37 there is a surprise: the selector stays in force after that and is matched with *no*
labels. So one that an unlabelled namespace would satisfy (only NotIn and DoesNotExist) reaches every namespace,
whatever labels that has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from podium.cluster import PodQuery, QueryTerm, Term, TermKind
from podium.kube import Namespace

NO_LABELS: Mapping[str, str] = {}


class WeighedQuery(NamedTuple):
    """One preferred term: what a matching pod in the node's domain adds to its score."""

    topology_key: str
    weight: int
    query: PodQuery


class Incoming(NamedTuple):
    """The questions to ask; `affinity` is None where no affinity is required."""

    affinity: PodQuery | None
    """Pods that match every required affinity term at once."""
    affinity_keys: tuple[str, ...]
    anti_affinity: tuple[tuple[str, PodQuery], ...]
    """Topology key and the pods to keep away from."""
    preferred: tuple[WeighedQuery, ...]

    def queries(self) -> Iterable[PodQuery]:
        if self.affinity is not None:
            yield self.affinity
        for _key, query in self.anti_affinity:
            yield query
        for term in self.preferred:
            yield term.query


NONE = Incoming(None, (), (), ())


def incoming_terms(terms: tuple[Term, ...], namespaces: Iterable[Namespace], *, unlabelled: bool = False) -> Incoming:
    """The questions that a pod with these terms asks, with the namespaces that exist now.

    `unlabelled`: a selector that a namespace without labels satisfies reaches every namespace.
    """
    namespaces = tuple(namespaces)
    attracting = [term for term in terms if term.kind == TermKind.REQUIRED_AFFINITY]
    repelling = [term for term in terms if term.kind == TermKind.REQUIRED_ANTI_AFFINITY]
    preferred = [term for term in terms if term.kind == TermKind.PREFERRED_AFFINITY]
    dislikes = [term for term in terms if term.kind == TermKind.PREFERRED_ANTI_AFFINITY]

    def reach(term: Term) -> QueryTerm:
        return _reach(term, namespaces, unlabelled)

    def query(term: Term) -> PodQuery:
        return PodQuery((reach(term),))

    return Incoming(
        PodQuery(tuple(reach(term) for term in attracting)) if attracting else None,
        tuple(dict.fromkeys(term.topology_key for term in attracting)),
        tuple((term.topology_key, query(term)) for term in repelling),
        tuple(WeighedQuery(term.topology_key, term.weight, query(term)) for term in preferred)
        + tuple(WeighedQuery(term.topology_key, -term.weight, query(term)) for term in dislikes),
    )


def chooses_namespaces(terms: tuple[Term, ...]) -> bool:
    """Whether the questions depend on which namespaces exist and how they are labelled."""
    return any(term.namespace_selector.requirements for term in terms)


def _reach(term: Term, namespaces: tuple[Namespace, ...], unlabelled: bool) -> QueryTerm:
    chooser = term.namespace_selector
    if chooser.empty or (unlabelled and chooser.matches(NO_LABELS)):
        return QueryTerm(None, term.selector)
    chosen = frozenset(namespace.name for namespace in namespaces if chooser.matches(namespace.labels))
    return QueryTerm(term.namespaces | chosen, term.selector)
