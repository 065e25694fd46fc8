"""Groups the affinity terms of pods already on nodes, so that each distinct term is matched once.

A pod is repelled by (required anti-affinity) or drawn to (preferred terms, required affinity) pods that are already
placed. Placed pods of one Deployment share their terms, so terms are grouped by value, with a column that says how
often each node's pods hold the term. A new pod is compared with the distinct terms only, found through the
labels that they require.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from itertools import count

import msgspec
import numpy as np

from podium.cluster.columns import Column, ColumnSet
from podium.cluster.counts import RowCount
from podium.cluster.selector_index import SelectorIndex
from podium.kube import Affinity, PodAffinityTerm
from podium.kube.selector import Selector, SelectorError, compile_label_selector


class TermKind(enum.IntEnum):
    """Where in a pod's affinity a term stands."""

    REQUIRED_AFFINITY = 0
    REQUIRED_ANTI_AFFINITY = 1
    PREFERRED_AFFINITY = 2
    PREFERRED_ANTI_AFFINITY = 3


class Term(msgspec.Struct, frozen=True, gc=False, cache_hash=True):
    """One pod (anti-)affinity term, compiled: which pods it speaks of, within which topology."""

    kind: TermKind
    namespaces: frozenset[str]
    namespace_selector: Selector
    selector: Selector
    topology_key: str
    weight: int = 0

    def matches(self, namespace: str, namespace_labels: Mapping[str, str], labels: Mapping[str, str]) -> bool:
        in_scope = namespace in self.namespaces or self.namespace_selector.matches(namespace_labels)
        return in_scope and self.selector.matches(labels)


_LISTS = (
    ("requiredAffinityTerms", TermKind.REQUIRED_AFFINITY),
    ("requiredAntiAffinityTerms", TermKind.REQUIRED_ANTI_AFFINITY),
    ("preferredAffinityTerms", TermKind.PREFERRED_AFFINITY),
    ("preferredAntiAffinityTerms", TermKind.PREFERRED_ANTI_AFFINITY),
)


def parse_terms(affinity: Affinity | None, namespace: str) -> tuple[tuple[Term, ...], dict[TermKind, str]]:
    """A pod's (anti-)affinity terms and, per kind, what is wrong with them; a list with an error counts as empty."""
    if affinity is None:
        return (), {}
    terms: list[Term] = []
    errors: dict[TermKind, str] = {}
    for name, kind in _LISTS:
        try:
            terms += [_compile(kind, term, namespace, weight) for weight, term in _terms_of(affinity, kind)]
        except SelectorError as error:
            errors[kind] = f"{name}: {error}"
    return tuple(terms), errors


def _terms_of(affinity: Affinity, kind: TermKind) -> list[tuple[int, PodAffinityTerm]]:
    """The terms of one kind with their weights; required ones have none."""
    attracts = kind in (TermKind.REQUIRED_AFFINITY, TermKind.PREFERRED_AFFINITY)
    rules = affinity.pod_affinity if attracts else affinity.pod_anti_affinity
    if rules is None:
        return []
    if kind in (TermKind.REQUIRED_AFFINITY, TermKind.REQUIRED_ANTI_AFFINITY):
        return [(0, term) for term in rules.required]
    return [(weighted.weight, weighted.pod_affinity_term) for weighted in rules.preferred]


def _compile(kind: TermKind, term: PodAffinityTerm, namespace: str, weight: int) -> Term:
    selector = compile_label_selector(term.label_selector)
    if term.namespaces or term.namespace_selector is not None:
        namespaces = frozenset(term.namespaces)
    else:
        namespaces = frozenset((namespace,))
    return Term(kind, namespaces, compile_label_selector(term.namespace_selector), selector, term.topology_key, weight)


class TermGroup(RowCount):
    """All placed pods that hold one term: how often per row."""

    __slots__ = ("term",)

    def __init__(self, term: Term, column: Column, ticks: Iterator[int]) -> None:
        super().__init__(column, ticks)
        self.term = term


class PlacedTerms:
    """Every distinct term held by a pod on a node. `epoch` moves when a term appears or its last holder goes."""

    def __init__(self, columns: ColumnSet) -> None:
        self._columns = columns
        self._groups: dict[Term, TermGroup] = {}
        self._by_anchor: SelectorIndex[TermGroup] = SelectorIndex()
        self._ticks = count(1)
        self.epoch = 0

    def add(self, terms: tuple[Term, ...], row: int) -> None:
        for term in terms:
            group = self._groups.get(term)
            if group is None:
                group = self._groups[term] = TermGroup(term, self._columns.new(np.int64), self._ticks)
                self._by_anchor.add(group, term.selector)
                self.epoch += 1
            group.add(row, 1)

    def remove(self, terms: tuple[Term, ...], row: int) -> None:
        for term in terms:
            group = self._groups[term]
            group.add(row, -1)
            if not group.total:
                del self._groups[term]
                self._by_anchor.discard(group, term.selector)
                self.epoch += 1

    def matching(
        self, namespace: str, namespace_labels: Mapping[str, str], labels: Mapping[str, str]
    ) -> list[TermGroup]:
        """The groups whose term speaks of a pod with these labels in this namespace."""
        if not self._groups:
            return []
        return [
            group
            for group in self._by_anchor.candidates(labels)
            if group.term.matches(namespace, namespace_labels, labels)
        ]
