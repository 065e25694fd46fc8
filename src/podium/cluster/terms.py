"""The affinity terms of pods already on nodes, grouped so that each distinct term is matched once.

A pod is repelled by (required anti-affinity) or drawn to (preferred terms, required affinity) pods that are already
placed. Placed pods of one Deployment share their terms, so terms are grouped by value, with a column that says how
often each node's pods hold the term. A new pod is compared with the distinct terms only, found through their anchors.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.cluster.anchors import AnchorIndex
from podium.cluster.columns import Column, ColumnSet
from podium.kube import Affinity, PodAffinityTerm
from podium.kube.selector import Selector, compile_label_selector


class TermKind(enum.IntEnum):
    REQUIRED_AFFINITY = 0
    REQUIRED_ANTI_AFFINITY = 1
    PREFERRED_AFFINITY = 2
    PREFERRED_ANTI_AFFINITY = 3


class Term(NamedTuple):
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


def compile_terms(affinity: Affinity | None, namespace: str) -> tuple[Term, ...]:
    """All pod (anti-)affinity terms of a pod; raises SelectorError for one that cannot be parsed."""
    if affinity is None:
        return ()
    terms: list[Term] = []
    for kind, rules in ((0, affinity.pod_affinity), (1, affinity.pod_anti_affinity)):
        if rules is None:
            continue
        for term in rules.required_during_scheduling_ignored_during_execution:
            terms.append(_compile(TermKind(kind), term, namespace, 0))
        for weighted in rules.preferred_during_scheduling_ignored_during_execution:
            terms.append(_compile(TermKind(kind + 2), weighted.pod_affinity_term, namespace, weighted.weight))
    return tuple(terms)


def _compile(kind: TermKind, term: PodAffinityTerm, namespace: str, weight: int) -> Term:
    if term.namespaces or term.namespace_selector is not None:
        namespaces = frozenset(term.namespaces)
    else:
        namespaces = frozenset((namespace,))
    return Term(
        kind,
        namespaces,
        compile_label_selector(term.namespace_selector),
        compile_label_selector(term.label_selector),
        term.topology_key,
        weight,
    )


class TermGroup:
    """All placed pods that hold one term: how often per row."""

    __slots__ = ("_column", "term", "total", "version")

    def __init__(self, term: Term, column: Column) -> None:
        self.term = term
        self._column = column
        self.total = 0
        self.version = 0

    @property
    def per_row(self) -> NDArray[np.int64]:
        return self._column.view


class PlacedTerms:
    """Every distinct term held by a pod on a node. `epoch` moves when a term appears or its last holder goes."""

    def __init__(self, columns: ColumnSet) -> None:
        self._columns = columns
        self._groups: dict[Term, TermGroup] = {}
        self._by_anchor: AnchorIndex[TermGroup] = AnchorIndex()
        self.epoch = 0

    def add(self, terms: tuple[Term, ...], row: int) -> None:
        for term in terms:
            group = self._groups.get(term)
            if group is None:
                group = self._groups[term] = TermGroup(term, self._columns.new(np.int64))
                self._by_anchor.add(group, term.selector)
                self.epoch += 1
            self._count(group, row, 1)

    def remove(self, terms: tuple[Term, ...], row: int) -> None:
        for term in terms:
            group = self._groups[term]
            self._count(group, row, -1)
            if not group.total:
                del self._groups[term]
                self._by_anchor.discard(group, term.selector)
                self.epoch += 1

    def matching(
        self, namespace: str, namespace_labels: Mapping[str, str], labels: Mapping[str, str]
    ) -> list[TermGroup]:
        """The groups whose term speaks of a pod with these labels in this namespace."""
        return [
            group
            for group in self._by_anchor.candidates(labels)
            if group.term.matches(namespace, namespace_labels, labels)
        ]

    @staticmethod
    def _count(group: TermGroup, row: int, delta: int) -> None:
        group._column.view[row] += delta
        group.total += delta
        group.version += 1
