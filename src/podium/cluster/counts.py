"""Counts the pods on each node that match a query, as they come and go.

Spreading and inter-pod affinity ask again and again "how many pods of these namespaces with these labels are on each
node?". A `PodQuery` is that question; the first time it is asked a column of counts is made, and from then on every pod
that comes or goes adds or subtracts one. Pods with equal namespace, labels and terminating state are one `PodClass`, so
that a selector is evaluated once per class and not once per pod. The columns asked about longest ago are dropped.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.cluster.columns import Column, ColumnSet
from podium.cluster.labels import LabelColumn, NodeLabels
from podium.cluster.selector_index import Pair, SelectorIndex, required_pairs
from podium.kube.selector import Selector

MOST_COLUMNS = 2048
FEW_VALUES = 256
"""Sums over a label with more values are taken when asked for: kept, they would fill as much memory as the rows do."""


class RowCount:
    """Counts per row, and when one last changed: of pods that match a query, of pods that hold a term.

    Terms ask for sums over the nodes of a domain. Where a label has few values these sums are kept, too: they move with
    the count, and are taken again when labels change. `version` moves whenever a count does, and no two counts that
    share their ticks ever share a version.
    """

    __slots__ = ("_column", "_labels_version", "_sums", "_ticks", "total", "version")

    def __init__(self, column: Column, ticks: Iterator[int]) -> None:
        self._column = column
        self._ticks = ticks
        self._sums: dict[LabelColumn, NDArray[np.int64]] = {}
        self._labels_version = -1
        self.total = 0
        self.version = next(ticks)

    @property
    def per_row(self) -> NDArray[np.int64]:
        return self._column.view

    def add(self, row: int, delta: int) -> None:
        self._column.view[row] += delta
        self.total += delta
        self.version = next(self._ticks)
        for label, sums in self._sums.items():
            number = label.ids[row]
            if 0 < number < len(sums):  # a label that changed since may have values the sums do not know
                sums[number] += delta

    def sums(self, labels: NodeLabels, key: str) -> NDArray[np.int64]:
        """Per number of a label's value the sum over the nodes that have it; 0 under 0. The caller's own."""
        if self._labels_version != labels.version:
            self._sums, self._labels_version = {}, labels.version
        label = labels.column(key)
        sums = self._sums.get(label)
        if sums is None:
            sums = label.sums(self.per_row)
            if len(sums) > FEW_VALUES:
                return sums
            self._sums[label] = sums
        return sums.copy()


class QueryTerm(NamedTuple):
    """Pods of some namespaces (None: of any) whose labels match."""

    namespaces: frozenset[str] | None
    selector: Selector


class PodQuery(NamedTuple):
    """Pods that match every term; terminating ones may be left out."""

    terms: tuple[QueryTerm, ...]
    terminating: bool = True

    def matches(self, namespace: str, labels: Mapping[str, str], terminating: bool) -> bool:
        if terminating and not self.terminating:
            return False
        return all(
            (term.namespaces is None or namespace in term.namespaces) and term.selector.matches(labels)
            for term in self.terms
        )


class PodClass:
    """All pods that no selector can tell apart."""

    __slots__ = ("columns", "labels", "namespace", "pods", "rows", "terminating")

    def __init__(self, namespace: str, labels: Mapping[str, str], terminating: bool) -> None:
        self.namespace = namespace
        self.labels = labels
        self.terminating = terminating
        self.pods = 0
        self.rows: dict[int, int] = {}
        self.columns: list[CountColumn] = []


class CountColumn(RowCount):
    """The pods that match one query, per row."""

    __slots__ = ("query",)

    def __init__(self, query: PodQuery, column: Column, ticks: Iterator[int]) -> None:
        super().__init__(column, ticks)
        self.query = query


ClassKey = tuple[str, frozenset[Pair], bool]


class PodCounts:
    """Classes of the pods on nodes, and the count columns asked for so far."""

    def __init__(self, columns: ColumnSet) -> None:
        self._columns = columns
        self._classes: dict[ClassKey, PodClass] = {}
        self._classes_by_pair: dict[Pair, dict[PodClass, None]] = {}
        self._by_query: OrderedDict[PodQuery, CountColumn] = OrderedDict()
        self._by_anchor: SelectorIndex[CountColumn] = SelectorIndex()
        self._ticks = count(1)

    def class_of(self, namespace: str, labels: Mapping[str, str], terminating: bool) -> PodClass:
        key = (namespace, frozenset(labels.items()), terminating)
        pods = self._classes.get(key)
        if pods is None:
            pods = self._classes[key] = self._new_class(namespace, labels, terminating)
        return pods

    def add(self, pods: PodClass, row: int) -> None:
        pods.pods += 1
        pods.rows[row] = pods.rows.get(row, 0) + 1
        for column in pods.columns:
            column.add(row, 1)

    def remove(self, pods: PodClass, row: int) -> None:
        """Take one pod of the class off a row. An empty class stays until `discard_if_empty`, so that undo is cheap."""
        pods.pods -= 1
        left = pods.rows[row] - 1
        if left:
            pods.rows[row] = left
        else:
            del pods.rows[row]
        for column in pods.columns:
            column.add(row, -1)

    def discard_if_empty(self, pods: PodClass) -> None:
        """Forget a class that has no pod left."""
        if pods.pods:
            return
        self._classes.pop((pods.namespace, frozenset(pods.labels.items()), pods.terminating), None)
        for pair in pods.labels.items():
            filed = self._classes_by_pair.get(pair)
            if filed is not None:
                filed.pop(pods, None)
                if not filed:
                    del self._classes_by_pair[pair]

    def column(self, query: PodQuery) -> CountColumn:
        """The counts for a query, made on first use."""
        known = self._by_query.get(query)
        if known is not None:
            self._by_query.move_to_end(query)
            return known
        column = self._by_query[query] = CountColumn(query, self._columns.new(np.int64), self._ticks)
        self._by_anchor.add(column, query.terms[0].selector)
        for pods in self._candidates(query):
            if query.matches(pods.namespace, pods.labels, pods.terminating):
                pods.columns.append(column)
                for row, count in pods.rows.items():
                    column.add(row, count)
        if len(self._by_query) > MOST_COLUMNS:
            self._drop_oldest()
        return column

    def _new_class(self, namespace: str, labels: Mapping[str, str], terminating: bool) -> PodClass:
        pods = PodClass(namespace, labels, terminating)
        for pair in labels.items():
            self._classes_by_pair.setdefault(pair, {})[pods] = None
        for column in self._by_anchor.candidates(labels):
            if column.query.matches(namespace, labels, terminating):
                pods.columns.append(column)
        return pods

    def _candidates(self, query: PodQuery) -> dict[PodClass, None]:
        pairs = required_pairs(query.terms[0].selector)
        if pairs is None:
            return dict.fromkeys(self._classes.values())
        return {pods: None for pair in pairs for pods in self._classes_by_pair.get(pair, ())}

    def _drop_oldest(self) -> None:
        query, column = self._by_query.popitem(last=False)
        self._by_anchor.discard(column, query.terms[0].selector)
        for pods in self._candidates(query):
            if column in pods.columns:
                pods.columns.remove(column)
