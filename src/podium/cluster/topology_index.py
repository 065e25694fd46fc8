"""Files things that can be reached from some nodes only: disks of one node, storage pools of one zone.

Each thing says where it is by label requirements. Thousands of local disks each name another node, so asking them one
by one would cost disks × nodes. Things that ask for one value of one label are therefore filed under that value, and
the answer for all nodes is one table over the label's values. Everything else is filed by its whole condition, and
each distinct condition is matched once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from podium.cluster.labels import Ids, LabelColumn, Mask, NodeLabels
from podium.kube.affinity import NodeSelector
from podium.kube.selector import Requirement, compile_node_selector
from podium.kube.storage import VolumeNodeAffinity

T = TypeVar("T")

Where = tuple[tuple[Requirement, ...], ...]
"""Terms of which one must hold, each a list of requirements that must all hold."""

ANYWHERE: Where = ((),)
HOSTNAME = "kubernetes.io/hostname"

_Pin = tuple[str, tuple[Requirement, ...]]
"""A label key whose value decides, and what else is asked of the node."""


def where_selected(selector: NodeSelector) -> Where:
    """Where a node selector points by labels alone: conditions on node fields are not looked at."""
    return tuple(term.requirements for term in compile_node_selector(selector).terms if not term.errors)


def where_reachable(affinity: VolumeNodeAffinity | None) -> Where:
    """The nodes that a volume can be used from."""
    if affinity is None or affinity.required is None:
        return ANYWHERE
    return where_selected(affinity.required)


def matches(where: Where, labels: Mapping[str, str]) -> bool:
    """Whether a node with these labels is one of the nodes meant."""
    return any(all(requirement.matches(labels) for requirement in term) for term in where)


def matching_rows(where: Where, labels: NodeLabels, rows: NDArray[np.intp] | None) -> Mask:
    """bool per row (of `rows`, or of all): the node is one of those meant."""
    answer: Mask | None = None
    for term in where:
        held = labels.match(term, rows)
        answer = held if answer is None else answer | held
    return np.zeros(labels.rows if rows is None else len(rows), dtype=np.bool_) if answer is None else answer


class ReachIndex(Generic[T]):
    """Named things, filed by where they can be reached."""

    def __init__(self) -> None:
        self._pinned: dict[_Pin, _Pinned[T]] = {}
        self._others: dict[Where, dict[str, T]] = {}

    def __bool__(self) -> bool:
        return bool(self._pinned or self._others)

    def __iter__(self) -> Iterator[T]:
        for pinned in self._pinned.values():
            for held in pinned.by_value.values():
                yield from held.values()
        for held in self._others.values():
            yield from held.values()

    def add(self, name: str, where: Where, item: T) -> None:
        pin = _pin(where)
        if pin is None:
            self._others.setdefault(where, {})[name] = item
            return
        key, value, rest = pin
        pinned = self._pinned.get((key, rest))
        if pinned is None:
            pinned = self._pinned[key, rest] = _Pinned()
        pinned.add(value, name, item)

    def discard(self, name: str, where: Where) -> None:
        pin = _pin(where)
        if pin is None:
            held = self._others.get(where, {})
            held.pop(name, None)
            if not held:
                self._others.pop(where, None)
            return
        key, value, rest = pin
        pinned = self._pinned.get((key, rest))
        if pinned is not None:
            pinned.discard(value, name)
            if not pinned.by_value:
                del self._pinned[key, rest]

    def at(self, labels: Mapping[str, str]) -> Iterator[T]:
        """The things that a node with these labels can reach."""
        for (key, rest), pinned in self._pinned.items():
            if key in labels and all(requirement.matches(labels) for requirement in rest):
                yield from pinned.by_value.get(labels[key], {}).values()
        for where, held in self._others.items():
            if matches(where, labels):
                yield from held.values()

    def count(
        self, labels: NodeLabels, rows: NDArray[np.intp] | None, wanted: Callable[[T], bool] | None = None
    ) -> NDArray[np.int64]:
        """How many of the (wanted) things each row can reach."""
        total = np.zeros(labels.rows if rows is None else len(rows), dtype=np.int64)
        for (key, rest), pinned in self._pinned.items():
            column = labels.column(key)
            ids = column.ids if rows is None else column.ids[rows]
            reached = pinned.count(column, ids) if wanted is None else pinned.count_wanted(column, ids, wanted)
            total += reached * labels.match(rest, rows) if rest else reached
        for where, held in self._others.items():
            number = len(held) if wanted is None else sum(map(wanted, held.values()))
            if number:
                total += number * matching_rows(where, labels, rows)
        return total


class _Pinned(Generic[T]):
    """Things filed under the values of one label, with their numbers ready to be spread over nodes.

    Each value has a slot that holds its number of things; a table leads from the label column's ids to slots, and is
    brought up to date when it is needed. Slot 0 stands for values that nothing is filed under.
    """

    __slots__ = ("_slot", "_slot_of_id", "_things", "_unknown", "by_value")

    def __init__(self) -> None:
        self.by_value: dict[str, dict[str, T]] = {}
        self._slot: dict[str, int] = {}
        self._things: NDArray[np.int64] = np.zeros(8, dtype=np.int64)
        self._slot_of_id: NDArray[np.intp] = np.zeros(1, dtype=np.intp)
        self._unknown: list[str] = []

    def add(self, value: str, name: str, item: T) -> None:
        held = self.by_value.setdefault(value, {})
        held[name] = item
        slot = self._slot.get(value)
        if slot is None:
            slot = self._slot[value] = len(self._slot) + 1
            self._unknown.append(value)
            if slot == len(self._things):
                self._things = np.concatenate((self._things, np.zeros_like(self._things)))
        self._things[slot] = len(held)

    def discard(self, value: str, name: str) -> None:
        held = self.by_value.get(value, {})
        if held.pop(name, None) is not None:
            self._things[self._slot[value]] = len(held)
            if not held:
                del self.by_value[value]

    def count(self, column: LabelColumn, ids: Ids) -> NDArray[np.int64]:
        """How many things each node has that shows these label ids."""
        known = len(self._slot_of_id)
        if known < len(column.values):
            more = [self._slot.get(value, 0) for value in column.values[known:]]
            self._slot_of_id = np.concatenate((self._slot_of_id, np.array(more, dtype=np.intp)))
        for value in self._unknown:
            self._slot_of_id[column.id_of.get(value, 0)] = self._slot[value]
        self._unknown.clear()
        self._slot_of_id[0] = 0  # the id of an absent label
        counts: NDArray[np.int64] = self._things[self._slot_of_id[ids]]
        return counts

    def count_wanted(self, column: LabelColumn, ids: Ids, wanted: Callable[[T], bool]) -> NDArray[np.int64]:
        def number_of(value: str) -> int:
            return sum(map(wanted, self.by_value.get(value, {}).values()))

        if len(ids) < len(self.by_value):
            values = (column.values[i] if i else None for i in ids.tolist())
            return np.array([0 if value is None else number_of(value) for value in values], dtype=np.int64)
        per_id = np.zeros(len(column.values), dtype=np.int64)
        for value in self.by_value:
            number = column.id_of.get(value)
            if number is not None:
                per_id[number] = number_of(value)
        return per_id[ids]


def _pin(where: Where) -> tuple[str, str, tuple[Requirement, ...]] | None:
    """The label and the one value that a single term asks for, hostname before others, and the rest of the term."""
    if len(where) != 1:
        return None
    single = [each for each in where[0] if each.operator == "In" and len(each.values) == 1]
    if not single:
        return None
    chosen = next((each for each in single if each.key == HOSTNAME), single[0])
    return chosen.key, chosen.values[0], tuple(each for each in where[0] if each is not chosen)
